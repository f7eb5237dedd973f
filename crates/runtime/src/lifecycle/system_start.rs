//! Starts a program in system mode: its threads run in parallel, and scripts join and leave it while it runs.

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

/// Called when the program is loaded. Joins the script if there is one already; otherwise nothing controls
/// the program.
pub fn init(wire: &Wire) {
    system_mode::init();
    match wire.world.system.load(Relaxed) {
        0 => {}
        fd => join(wire, fd as i32 - 1),
    }
}

/// The body of the kernel thread that waits for scripts to join and leave.
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
                // Reports to the engine whether the script has joined.
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

/// Lets a script hold threads from now on. `fd` is the descriptor of the memory that the script shares.
fn join(wire: &Wire, fd: i32) {
    let program = wire.world.program.load(Relaxed);
    if program >> 16 != 0 {
        MODE.store(mode::SCRIPT, Relaxed);
    }
    system_mode::join(program & 0xffff, fd);
}

/// Stores the address of the program's `main` and returns the function to call in its place.
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
        // SAFETY: the address is that of the program's own `main`, called with the arguments that glibc
        // passes.
        unsafe { core::mem::transmute(MAIN.load(Relaxed)) };
    main(argc, argv, environment)
}
