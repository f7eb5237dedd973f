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
    /// As `TryLock`, with a time-out.
    TimedLock(usize, u64),
    /// Read-write locks.
    ReadLock(u64),
    WriteLock(u64),
    /// The register becomes 1 if the lock was acquired.
    TryReadLock(usize, u64),
    TryWriteLock(usize, u64),
    RwUnlock(u64),
    /// Waits for a token of a semaphore.
    Take(u64),
    /// The register becomes 1 if there was a token.
    TryTake(usize, u64),
    /// As `TryTake`, with a time-out.
    TimedTake(usize, u64),
    Post(u64),
    /// Jumps there if the initialiser of this control word is done; otherwise runs what follows, up to `OnceEnd`.
    Once(u64, usize),
    /// Not visible: the initialiser is done.
    OnceEnd(u64),
    /// Arrives at a barrier, and leaves it. The register, if any, becomes 1 if the thread was the last to arrive.
    Barrier(Option<usize>, u64),
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
    /// Not visible: frees the first word of memory. Who accesses it later crashes.
    Free,
    /// Creates a thread that runs this code.
    Create(usize),
    /// Joins the nth thread that this thread has created.
    Join(usize),
    /// The register becomes 1 if that thread has ended.
    TryJoin(usize, usize),
}

/// The code of all threads; the first is the main thread's. Its end ends the process.
#[derive(Clone, Debug, Default)]
pub struct Program {
    pub code: Vec<Vec<Do>>,
    /// What memory holds at first, where not 0.
    pub memory: Vec<(u64, u8)>,
    /// How many tokens each semaphore has at first.
    pub tokens: Vec<u64>,
    /// How many threads each barrier is for.
    pub parties: Vec<u64>,
}
