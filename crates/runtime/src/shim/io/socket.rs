//! Sockets. A connection between two threads of the program is known to have both ends inside. If a thread
//! waits on it and no thread can serve it, that is a deadlock, and Heisen does not wait in real time.

use super::open_close::made;
use super::poll::deadline_in_time;
use super::stream;
use super::{Call, Piece, WOULD_BLOCK};
use crate::blocking::descriptors;
use crate::blocking::descriptors::{Class, POLLIN, POLLOUT, PollFd};
use crate::blocking::input_log;
use crate::blocking::input_log::{Kind, Out};
use crate::platform::baton::Guarded;
use crate::platform::glibc;
use crate::platform::glibc::real;
use crate::platform::sys;
use crate::sched::clock;
use crate::sched::clock::Timespec;
use crate::sched::events;
use crate::sched::{self, Woken};
use crate::shim::shims;
use core::cell::Cell;
use core::ffi::c_int;
use heisen_trace::Op;

const AF_UNIX: u16 = 1;
const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;
const MSG_DONTWAIT: c_int = 0x40;
const MSG_WAITALL: c_int = 0x100;
const MSG_WAITFORONE: c_int = 0x1_0000;
const SO_RCVTIMEO: c_int = 20;
const SO_SNDTIMEO: c_int = 21;

/// Sets of ports.
struct Ports([Cell<u64>; 1024]);

impl Ports {
    fn has(&self, port: u16) -> bool {
        self.0[port as usize / 64].get() >> (port % 64) & 1 != 0
    }

    fn add(&self, port: u16) {
        let word = &self.0[port as usize / 64];
        word.set(word.get() | 1 << (port % 64));
    }
}

/// Ports on which the program listens, and from which it has connected.
static LISTENS: Guarded<Ports> = Guarded::new(Ports([const { Cell::new(0) }; 1024]));
static CONNECTED: Guarded<Ports> = Guarded::new(Ports([const { Cell::new(0) }; 1024]));

/// Family and port (in network byte order; only compared) of one of a socket's two addresses.
fn address(fd: c_int, number: usize) -> (u16, u16) {
    let mut bytes = [0u16; 64];
    let mut length = 128u32;
    sys::call(number, [fd as usize, bytes.as_mut_ptr() as usize, &raw mut length as usize, 0, 0, 0]);
    (bytes[0], bytes[1])
}

/// Whether the peer of a connection is this process. For a network connection, this holds if its port is in
/// `ports`.
fn peer_is_inside(fd: c_int, ports: &Ports) -> bool {
    match address(fd, sys::SYS_GETPEERNAME) {
        (AF_UNIX, _) => sys::peer_process(fd) == sys::getpid(),
        (AF_INET | AF_INET6, port) => ports.has(port),
        _ => false,
    }
}

fn classify(fd: c_int, ports: &Ports) {
    let inside = input_log::call(Kind::Classify, fd, Out::default(), || peer_is_inside(fd, ports) as isize);
    descriptors::set_class(fd, if inside != 0 { Class::Inside } else { Class::Outside });
}

/// The memory to which a call writes a name, or another value, and its length: as much as the program has room
/// for.
fn name_pieces(at: usize, length: usize) -> [Piece; 2] {
    if at == 0 || length == 0 || !input_log::is_on() {
        return [Piece { base: 0, length: 0 }; 2];
    }
    // SAFETY: the program passes how much room there is, or null.
    let room = unsafe { *(length as *const u32) } as usize;
    [Piece { base: at, length: room }, Piece { base: length, length: 4 }]
}

/// A call on a socket that reads or sets something.
fn ask(fd: c_int, fixed: &[Piece], number: usize, args: [usize; 5]) -> c_int {
    let [a, b, c, d, e] = args;
    let out = Out { fixed, ..Out::default() };
    let call = || sys::call(number, [a, b, c, d, e, 0]);
    glibc::kernel_result(input_log::call(Kind::Other, fd, out, call)) as c_int
}

/// Makes the system call `connect`.
fn try_connect(fd: c_int, args: [usize; 6]) -> isize {
    input_log::call(Kind::Connect, fd, Out::default(), || sys::call(sys::SYS_CONNECT, args))
}

fn accept_one(fd: c_int, address: usize, length: usize, flags: c_int, pc: usize) -> c_int {
    let call =
        Call { op: Op::Accept, fd, events: POLLIN, at_once: false, length: 0, timeout: SO_RCVTIMEO, pc };
    let got = call.make(|_| {
        input_log::call(
            Kind::Accept,
            fd,
            Out { fixed: &name_pieces(address, length), ..Out::default() },
            || {
                let ask = PollFd { fd, events: POLLIN, revents: 0 };
                if sys::poll(&raw const ask as usize, 1, 0) == 0 && !sys::is_nonblocking(fd) {
                    return WOULD_BLOCK;
                }
                sys::call(sys::SYS_ACCEPT4, [fd as usize, address, length, flags as usize, 0, 0])
            },
        )
    });
    if got >= 0 {
        if input_log::replays() {
            input_log::stand_in(fd, got as c_int, flags);
        }
        descriptors::set_socket(got as c_int, true);
        classify(got as c_int, &CONNECTED);
        if descriptors::class(got as c_int) == Class::Outside {
            input_log::used();
        }
    }
    glibc::kernel_result(got) as c_int
}

/// Connects without blocking the kernel thread: a blocking socket is made non-blocking for the duration of the
/// call.
fn connect_to(fd: c_int, to: usize, length: u32, pc: usize) -> c_int {
    const EINPROGRESS: isize = -115;
    let args = [fd as usize, to, length as usize, 0, 0, 0];
    sched::point(Op::Connect, fd as usize, pc);
    if sys::is_nonblocking(fd) {
        let got = try_connect(fd, args);
        connected(fd, got);
        return glibc::kernel_result(got) as c_int;
    }
    sys::set_nonblocking(fd, true);
    let mut got = try_connect(fd, args);
    while got == WOULD_BLOCK {
        // The queue of a Unix socket's peer is full; nothing announces when there is room.
        sched::yield_point(Op::Connect, pc);
        got = try_connect(fd, args);
    }
    descriptors::touched();
    if got == EINPROGRESS {
        let call = Call {
            op: Op::Connect,
            fd,
            events: POLLOUT,
            at_once: false,
            length: 0,
            timeout: SO_SNDTIMEO,
            pc,
        };
        // The thread must not be cancelled here, because the socket's mode has to be restored.
        if call.wait_for_it() == Woken::Ready {
            // Called again, the kernel returns the result, and the socket gets the state that it would have
            // without Heisen.
            got = try_connect(fd, args);
        }
    }
    sys::set_nonblocking(fd, false);
    connected(fd, got);
    glibc::kernel_result(got) as c_int
}

/// A connection was made, or is in progress, or failed.
fn connected(fd: c_int, got: isize) {
    if got < 0 {
        events::failed();
    }
    CONNECTED.add(address(fd, sys::SYS_GETSOCKNAME).1);
    classify(fd, &LISTENS);
    if descriptors::class(fd) == Class::Outside {
        input_log::used();
    }
    descriptors::touched();
}

fn receives(fd: c_int, flags: c_int, length: usize, pc: usize) -> Call {
    let at_once = flags & MSG_DONTWAIT != 0;
    Call { op: Op::Read, fd, events: POLLIN, at_once, length, timeout: SO_RCVTIMEO, pc }
}

/// A call that receives: the system call `number` with `args`, whose flags have the index `flags`.
fn receive(fd: c_int, number: usize, mut args: [usize; 6], flags: usize, out: Out<'_>, pc: usize) -> isize {
    let asked = args[flags] as c_int;
    args[flags] = (asked | MSG_DONTWAIT) as usize;
    let call = || input_log::call(Kind::Move, fd, out, || sys::call(number, args));
    glibc::kernel_result(receives(fd, asked, 0, pc).make(|_| call()))
}

fn receive_bytes(fd: c_int, at: usize, length: usize, flags: c_int, from: [usize; 2], pc: usize) -> isize {
    let ask = |done: usize, most: usize| {
        let flags = (flags | MSG_DONTWAIT) as usize;
        let args = [fd as usize, at + done, most - done, flags, from[0], from[1]];
        let counted = [Piece { base: at + done, length: most - done }];
        let out = Out { counted: &counted, unit: 1, fixed: &name_pieces(from[0], from[1]) };
        input_log::call(Kind::Move, fd, out, || sys::call(sys::SYS_RECVFROM, args))
    };
    let call = receives(fd, flags, length, pc);
    glibc::kernel_result(if flags & MSG_WAITALL == 0 || from[0] != 0 {
        call.make(|most| ask(0, most))
    } else {
        call.make_complete(length, ask)
    })
}

fn sends(fd: c_int, flags: c_int, length: usize, pc: usize) -> Call {
    let at_once = flags & MSG_DONTWAIT != 0;
    Call { op: Op::Write, fd, events: POLLOUT, at_once, length, timeout: SO_SNDTIMEO, pc }
}

fn send_bytes(fd: c_int, at: usize, length: usize, flags: c_int, to: [usize; 2], pc: usize) -> isize {
    glibc::kernel_result(sends(fd, flags, length, pc).make_complete(length, |done, most| {
        let flags = (flags | MSG_DONTWAIT) as usize;
        let args = [fd as usize, at + done, most - done, flags, to[0], to[1]];
        input_log::call(Kind::Move, fd, Out::default(), || sys::call(sys::SYS_SENDTO, args))
    }))
}

/// The size of a `struct mmsghdr`.
const MESSAGE: usize = 64;

fn receive_messages(
    fd: c_int,
    messages: usize,
    count: usize,
    flags: c_int,
    time: *const Timespec,
    pc: usize,
) -> isize {
    let Some(deadline) = deadline_in_time(time) else {
        return glibc::result(sys::EINVAL) as isize;
    };
    let ask = |done: usize, count: usize| {
        let flags = (flags | MSG_DONTWAIT) as usize;
        sys::call(sys::SYS_RECVMMSG, [fd as usize, messages + done * MESSAGE, count - done, flags, 0, 0])
    };
    let call = receives(fd, flags, 0, pc);
    glibc::kernel_result(if flags & MSG_WAITFORONE != 0 {
        call.make(|_| ask(0, count))
    } else {
        call.make_complete(
            count,
            |done, count| {
                if done > 0 && clock::until(deadline) == 0 { 0 } else { ask(done, count) }
            },
        )
    })
}

/// The pieces of a `struct msghdr`: their address and number.
fn message_pieces(message: usize) -> (usize, usize) {
    // SAFETY: the program passes a `struct msghdr`, whose third and fourth words these are.
    unsafe { (*(message as *const usize).add(2), *(message as *const usize).add(3)) }
}

shims! {
    /// Creates a socket. Until its peer is known to be in the program, a process outside may end a wait on it.
    /// Not a scheduling point.
    fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int = pc {
        let fd = real!(socket, fn(domain => c_int, kind => c_int, protocol => c_int) -> c_int);
        made(fd, Class::Outside);
        descriptors::set_socket(fd, true);
        fd
    }

    /// From now on, connections to its port are known to be between threads of the program. Not a scheduling
    /// point.
    fn listen(fd: c_int, backlog: c_int) -> c_int = pc {
        let result = ask(fd, &[], sys::SYS_LISTEN, [fd as usize, backlog as usize, 0, 0, 0]);
        if result == 0 {
            LISTENS.add(address(fd, sys::SYS_GETSOCKNAME).1);
            descriptors::touched();
        }
        result
    }

    /// Waits until a peer connects.
    fn accept(fd: c_int, address: usize, length: usize) -> c_int = pc { accept_one(fd, address, length, 0, pc) }

    /// As `accept`.
    fn accept4(fd: c_int, address: usize, length: usize, flags: c_int) -> c_int = pc {
        accept_one(fd, address, length, flags, pc)
    }

    /// Waits until the peer has accepted the connection, and enables the peer.
    fn connect(fd: c_int, to: usize, length: u32) -> c_int = pc { connect_to(fd, to, length, pc) }

    /// Waits until there is something to receive.
    fn recv(fd: c_int, at: usize, length: usize, flags: c_int) -> isize = pc {
        receive_bytes(fd, at, length, flags, [0, 0], pc)
    }

    /// As `recv`, for programs compiled with `_FORTIFY_SOURCE`.
    fn __recv_chk(fd: c_int, at: usize, length: usize, size: usize, flags: c_int) -> isize = pc {
        if length > size {
            return real!(__recv_chk, fn(
                fd => c_int, at => usize, length => usize, size => usize, flags => c_int
            ) -> isize);
        }
        receive_bytes(fd, at, length, flags, [0, 0], pc)
    }

    /// As `recv`.
    fn recvfrom(
        fd: c_int, at: usize, length: usize, flags: c_int, from: usize, from_length: usize
    ) -> isize = pc {
        receive_bytes(fd, at, length, flags, [from, from_length], pc)
    }

    /// As `recvfrom`, for programs compiled with `_FORTIFY_SOURCE`.
    fn __recvfrom_chk(
        fd: c_int, at: usize, length: usize, size: usize, flags: c_int, from: usize, from_length: usize
    ) -> isize = pc {
        if length > size {
            return real!(__recvfrom_chk, fn(
                fd => c_int, at => usize, length => usize, size => usize, flags => c_int, from => usize,
                from_length => usize
            ) -> isize);
        }
        receive_bytes(fd, at, length, flags, [from, from_length], pc)
    }

    /// As `recv`. Descriptors in the message are classified at their first use.
    fn recvmsg(fd: c_int, message: usize, flags: c_int) -> isize = pc {
        let args = [fd as usize, message, flags as usize, 0, 0, 0];
        if !input_log::is_on() {
            return receive(fd, sys::SYS_RECVMSG, args, 2, Out::default(), pc);
        }
        // SAFETY: the program passes a `struct msghdr`; what is in it is as long as it says.
        let words = unsafe { *(message as *const [usize; 7]) };
        let counted = super::pieces(words[2], words[3] as c_int).unwrap_or(&[]);
        // The name and its length, the length of the ancillary data and the flags. Ancillary data itself is not recorded.
        let whole = [
            Piece { base: words[0], length: words[1] as u32 as usize },
            Piece { base: message + 8, length: 4 },
            Piece { base: message + 40, length: 8 },
            Piece { base: message + 48, length: 4 },
        ];
        let out = Out { counted, unit: 1, fixed: &whole };
        let got = receive(fd, sys::SYS_RECVMSG, args, 2, out, pc);
        // SAFETY: as above.
        if got >= 0 && words[5] != 0 && unsafe { (*(message as *const [usize; 7]))[5] } != 0 {
            input_log::cannot(fd);
        }
        got
    }

    /// As `recv`, until `count` messages have arrived; with MSG_WAITFORONE, it waits only for the first. Like
    /// the kernel, it checks the time-out only after each message.
    fn recvmmsg(fd: c_int, messages: usize, count: u32, flags: c_int, time: *const Timespec) -> c_int = pc {
        input_log::cannot(fd);
        receive_messages(fd, messages, count as usize, flags, time, pc) as c_int
    }

    /// Waits until there is room for the data, and enables threads that wait for it.
    fn send(fd: c_int, at: usize, length: usize, flags: c_int) -> isize = pc {
        send_bytes(fd, at, length, flags, [0, 0], pc)
    }

    /// As `send`.
    fn sendto(fd: c_int, at: usize, length: usize, flags: c_int, to: usize, to_length: u32) -> isize = pc {
        send_bytes(fd, at, length, flags, [to, to_length as usize], pc)
    }

    /// As `send`. If the call may block and not all data fits, the rest follows without the ancillary data.
    fn sendmsg(fd: c_int, message: usize, flags: c_int) -> isize = pc {
        let (at, count) = message_pieces(message);
        let pieces = super::pieces(at, count as c_int).unwrap_or(&[]);
        glibc::kernel_result(sends(fd, flags, 0, pc).make_complete(super::total(pieces), |done, most| {
            if done > 0 {
                return stream::write_rest(fd, pieces, done, most);
            }
            let args = [fd as usize, message, (flags | MSG_DONTWAIT) as usize, 0, 0, 0];
            input_log::call(Kind::Move, fd, Out::default(), || sys::call(sys::SYS_SENDMSG, args))
        }))
    }

    /// As `send`, for several messages.
    fn sendmmsg(fd: c_int, messages: usize, count: u32, flags: c_int) -> c_int = pc {
        input_log::cannot(fd);
        let flags_now = (flags | MSG_DONTWAIT) as usize;
        glibc::kernel_result(sends(fd, flags, 0, pc).make_complete(count as usize, |done, count| {
            let rest = [fd as usize, messages + done * MESSAGE, count - done, flags_now, 0, 0];
            sys::call(sys::SYS_SENDMMSG, rest)
        })) as c_int
    }

    /// A scheduling point: threads that wait at the other end see the end of the stream.
    fn shutdown(fd: c_int, how: c_int) -> c_int = pc {
        sched::point(Op::Close, fd as usize, pc);
        descriptors::touched();
        ask(fd, &[], sys::SYS_SHUTDOWN, [fd as usize, how as usize, 0, 0, 0])
    }

    /// Not a scheduling point. A replay of recorded input binds nothing.
    fn bind(fd: c_int, address: usize, length: u32) -> c_int = pc {
        ask(fd, &[], sys::SYS_BIND, [fd as usize, address, length as usize, 0, 0])
    }

    /// Stored with recorded input. Not a scheduling point.
    fn getsockname(fd: c_int, address: usize, length: usize) -> c_int = pc {
        ask(fd, &name_pieces(address, length), sys::SYS_GETSOCKNAME, [fd as usize, address, length, 0, 0])
    }

    /// Stored with recorded input. Not a scheduling point.
    fn getpeername(fd: c_int, address: usize, length: usize) -> c_int = pc {
        ask(fd, &name_pieces(address, length), sys::SYS_GETPEERNAME, [fd as usize, address, length, 0, 0])
    }

    /// Stored with recorded input. Not a scheduling point.
    fn getsockopt(fd: c_int, level: c_int, option: c_int, value: usize, length: usize) -> c_int = pc {
        let args = [fd as usize, level as usize, option as usize, value, length];
        ask(fd, &name_pieces(value, length), sys::SYS_GETSOCKOPT, args)
    }

    /// Stored with recorded input. Not a scheduling point.
    fn setsockopt(fd: c_int, level: c_int, option: c_int, value: usize, length: u32) -> c_int = pc {
        let args = [fd as usize, level as usize, option as usize, value, length as usize];
        if input_log::replays() && descriptors::is_socket(fd) {
            // The runtime reads a call's time-out from the socket itself, so it must be set there, too.
            sys::call(sys::SYS_SETSOCKOPT, [args[0], args[1], args[2], args[3], args[4], 0]);
        }
        ask(fd, &[], sys::SYS_SETSOCKOPT, args)
    }
}
