//! The start of a program in system mode: its threads run in parallel, and scripts come and go.

use super::zygote;
use crate::blocking::kernel_calls;
use crate::platform::sys;
use crate::sched::access_mode::{MODE, mode};
use crate::script::system_mode;
use crate::wire_log;
use core::ffi::c_int;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use heisen_wire::{Wire, turn, world};

/// The program's `main`.
static MAIN: AtomicUsize = AtomicUsize::new(0);

/// The program is loaded: nothing of it is controlled.
pub fn init(wire: &Wire) {
    system_mode::init();
    match wire.world.system.load(Relaxed) {
        0 => {}
        fd => join(wire, fd as i32 - 1),
    }
}

/// Listens for scripts that come and go.
extern "C" fn listen(_what: usize) -> ! {
    let wire = wire_log::wire();
    loop {
        zygote::give_turn(wire);
        match zygote::wait_for_turn(wire) {
            turn::JOIN => {
                let (script, fd) = (wire.world.script.load(Relaxed), wire.world.system.load(Relaxed));
                match sys::open_of_process(script, fd.wrapping_sub(1)) {
                    Some(fd) => join(wire, fd),
                    None => system_mode::leave(),
                }
                // So it is told whether that went well.
                wire.world.system.store(system_mode::has_joined().into(), Relaxed);
            }
            turn::LEAVE => {
                system_mode::leave();
                MODE.store(0, Relaxed);
            }
            _ => {}
        }
    }
}

/// From now on a script may hold threads. `fd` is that of the memory it shares.
fn join(wire: &Wire, fd: i32) {
    let program = wire.world.program.load(Relaxed);
    if program >> 16 != 0 {
        MODE.store(mode::SCRIPT, Relaxed);
    }
    system_mode::join(program & 0xffff, fd);
}

/// What is called in the place of the program's `main`, whose address this keeps.
pub fn before_main(main: usize) -> usize {
    MAIN.store(main, Relaxed);
    begins as *const () as usize
}

extern "C" fn begins(argc: c_int, argv: usize, environment: usize) -> c_int {
    zygote::wait_to_go();
    if wire_log::wire().world.flags.load(Relaxed) & world::LISTENS != 0 {
        kernel_calls::keep(listen);
    }
    system_mode::number();
    let main: extern "C" fn(c_int, usize, usize) -> c_int =
        // SAFETY: the program's own, called as glibc would have.
        unsafe { core::mem::transmute(MAIN.load(Relaxed)) };
    main(argc, argv, environment)
}
