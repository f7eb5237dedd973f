//! Programs of the toy machine.

use heisen_trace::ValueOp;

/// An expression of 8 bits over registers. Tests are 0 or 1.
#[derive(Clone, Debug)]
pub enum Expr {
    Const(u8),
    Reg(usize),
    Apply(ValueOp, Box<Expr>, Box<Expr>),
}

impl Expr {
    pub fn of(op: ValueOp, a: Expr, b: Expr) -> Expr {
        Expr::Apply(op, Box::new(a), Box::new(b))
    }
}

/// An address.
#[derive(Clone, Debug)]
pub enum Place {
    Fixed(u64),
    /// The address plus the lowest bits of an expression.
    Indexed(u64, Expr, u8),
}

/// An instruction. Those marked as visible are steps.
#[derive(Clone, Debug)]
pub enum Do {
    /// Visible. Of two bytes, the register gets the sum.
    Load(usize, Place, u8),
    /// Visible. Of two bytes, both become the value.
    Store(Place, u8, Expr),
    /// Visible: the old value comes into the register.
    Add(usize, Place, Expr),
    /// Visible: compare with the first, exchange for the second; the old value comes into the register.
    Cas(usize, Place, Expr, Expr),
    JumpUnless(Expr, usize),
    Jump(usize),
    /// Skips as many instructions as the lowest two bits say.
    Switch(Expr),
    Assert(Expr),
    Assume(Expr),
    /// An input of this many bits.
    Input(usize, u32),
    /// Visible, as all below.
    Lock(u64),
    Unlock(u64),
    /// The register becomes 1 if the mutex was acquired.
    TryLock(usize, u64),
    Wait(u64, u64),
    /// The register becomes 1 if the thread was woken.
    TimedWait(usize, u64, u64),
    Signal(u64),
    Broadcast(u64),
    /// Waits on the futex at the address if it has this value; the last says whether the wait may time out. The register
    /// becomes 0 if the thread was woken, 1 if the word has another value, and 2 if it timed out.
    FutexWait(usize, u64, Expr, bool),
    /// Wakes at most so many threads that wait at the address. Their number comes into the register.
    FutexWake(usize, u64, usize),
    /// Creates a thread that runs this code.
    Create(usize),
    /// Joins the nth thread that this thread has created.
    Join(usize),
}

/// The code of all threads; the first is the main thread's. Its end ends the process.
#[derive(Clone, Debug)]
pub struct Program {
    pub code: Vec<Vec<Do>>,
    /// What memory holds at first, where not 0.
    pub memory: Vec<(u64, u8)>,
}
