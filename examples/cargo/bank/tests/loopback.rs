//! A test of the network: a client and a server in one program.

use bank::Account;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};

#[test]
fn a_deposit_by_wire() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let client = std::thread::spawn(move || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"25").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
    });
    let account = Account::default();
    let (mut stream, _) = listener.accept().unwrap();
    let mut amount = String::new();
    stream.read_to_string(&mut amount).unwrap();
    account.deposit(amount.parse().unwrap());
    client.join().unwrap();
    assert_eq!(account.balance(), 25);
}
