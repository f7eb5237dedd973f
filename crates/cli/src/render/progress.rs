//! A progress line on standard error for work that takes longer than half a second.

use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long the work may take before the line appears, and how often the line changes.
const DELAY: Duration = Duration::from_millis(500);
const PERIOD: Duration = Duration::from_millis(200);

/// A progress line. It is erased when this value is dropped.
#[derive(Debug)]
pub struct Progress {
    over: Arc<(Mutex<bool>, Condvar)>,
    /// `None` if nothing is shown.
    shower: Option<JoinHandle<()>>,
}

impl Progress {
    /// Shows what is done, unless `quiet` or standard error is not a terminal.
    pub fn of(what: &'static str, quiet: bool) -> Progress {
        if quiet || !io::stderr().is_terminal() {
            return Progress { over: Arc::default(), shower: None };
        }
        Progress::to(io::stderr(), what, DELAY)
    }

    fn to(mut to: impl Write + Send + 'static, what: &'static str, delay: Duration) -> Progress {
        let over: Arc<(Mutex<bool>, Condvar)> = Arc::default();
        let shared = over.clone();
        let shower = thread::spawn(move || {
            let (start, mut wait, mut shown) = (Instant::now(), delay, false);
            let (over, changed) = &*shared;
            let mut is_over = over.lock().unwrap_or_else(PoisonError::into_inner);
            while !*is_over {
                let waited = changed.wait_timeout_while(is_over, wait, |over| !*over);
                is_over = waited.unwrap_or_else(PoisonError::into_inner).0;
                if !*is_over {
                    let _ = write!(to, "\r\x1b[K{what}, {:.1} s", start.elapsed().as_secs_f32());
                    let _ = to.flush();
                    (wait, shown) = (PERIOD, true);
                }
            }
            if shown {
                let _ = write!(to, "\r\x1b[K");
            }
        });
        Progress { over, shower: Some(shower) }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        let (over, changed) = &*self.over;
        *over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        changed.notify_all();
        if let Some(shower) = self.shower.take() {
            let _ = shower.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Default)]
    struct Screen(Arc<Mutex<Vec<u8>>>);

    impl Write for Screen {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no writer panics").extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Screen {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().expect("no writer panics").clone()).expect("UTF-8")
        }
    }

    #[test]
    fn long_work_has_a_line_and_short_work_has_none() {
        let screen = Screen::default();
        drop(Progress::to(screen.clone(), "working", Duration::from_secs(3600)));
        assert_eq!(screen.text(), "");
        let progress = Progress::to(screen.clone(), "working", Duration::ZERO);
        while !screen.text().contains("working, ") {
            thread::yield_now();
        }
        drop(progress);
        assert!(screen.text().ends_with(" s\r\x1b[K"), "{:?}", screen.text());
    }
}
