//! A bank with two bugs that `cargo test` hardly ever meets and `cargo heisen test` always finds.

use std::sync::Mutex;

/// An account.
#[derive(Debug, Default)]
pub struct Account {
    balance: Mutex<i64>,
}

impl Account {
    /// The money in it.
    pub fn balance(&self) -> i64 {
        *self.balance.lock().unwrap()
    }

    /// Puts money in.
    pub fn deposit(&self, amount: i64) {
        *self.balance.lock().unwrap() += amount;
    }

    /// Adds a percentage. A bug: what is put in between reading and writing is lost.
    pub fn add_interest(&self, percent: i64) {
        let balance = self.balance();
        *self.balance.lock().unwrap() = balance + balance * percent / 100;
    }

    /// Moves money. A bug: two transfers in opposite directions may wait for each other.
    pub fn transfer(&self, amount: i64, to: &Account) {
        let mut from = self.balance.lock().unwrap();
        let mut to = to.balance.lock().unwrap();
        *from -= amount;
        *to += amount;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::scope;

    #[test]
    fn deposits() {
        let account = Account::default();
        scope(|s| {
            s.spawn(|| account.deposit(100));
            account.deposit(50);
        });
        assert_eq!(account.balance(), 150);
    }

    #[test]
    fn interest() {
        let account = Account::default();
        scope(|s| {
            s.spawn(|| account.deposit(100));
            account.add_interest(0);
        });
        assert_eq!(account.balance(), 100, "a deposit is lost");
    }

    #[test]
    fn transfers() {
        let (a, b) = (Account::default(), Account::default());
        scope(|s| {
            s.spawn(|| a.transfer(10, &b));
            b.transfer(20, &a);
        });
        assert_eq!(a.balance() + b.balance(), 0);
    }

    #[test]
    #[ignore]
    fn many_deposits() {
        let account = Account::default();
        scope(|s| {
            for _ in 0..8 {
                s.spawn(|| account.deposit(1));
            }
        });
        assert_eq!(account.balance(), 8);
    }
}
