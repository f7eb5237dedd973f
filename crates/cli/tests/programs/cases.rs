//! The list of programs, with arguments, input, and what to compare. `scripts/install-programs` installs
//! them.

use crate::input;
use crate::server::{End, Script};
use std::path::Path;

/// One program and its input.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The name of the executable.
    pub program: &'static str,
    /// Its arguments; `PORT` stands for an unused port.
    pub args: &'static [&'static str],
    /// Its environment variables, in addition to the usual ones.
    pub variables: &'static [(&'static str, &'static str)],
    /// The files that it reads, by name and text; `PORT` stands for the same port.
    pub files: &'static [(&'static str, &'static str)],
    /// Makes its other input, in the directory where it will run.
    pub prepare: fn(&Path),
    /// What is compared.
    pub kind: Kind,
}

/// What is compared with the native run, besides the exit status.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Its output, byte for byte.
    Prints,
    /// The lines of its output, in any order.
    PrintsLines,
    /// Its replies to a client.
    Serves(Script),
}

const PLAIN: Case =
    Case { program: "", args: &[], variables: &[], files: &[], prepare: input::none, kind: Kind::Prints };

const REDIS: Script = Script {
    lanes: &[
        "SET a 1\r\nINCR a\r\nGET a\r\nQUIT\r\n",
        "RPUSH b x y z\r\nLRANGE b 0 -1\r\nDEL b\r\nEXISTS b\r\nQUIT\r\n",
        "HSET c f 1 g 2\r\nHGETALL c\r\nEXPIRE c 100\r\nPERSIST c\r\nQUIT\r\n",
    ],
    half_close: false,
    end: End::Words("SHUTDOWN NOSAVE\r\n"),
};

const MEMCACHED: Script = Script {
    lanes: &[
        "set a 0 0 1\r\n1\r\nincr a 41\r\nget a\r\nquit\r\n",
        "set b 0 0 3\r\nxyz\r\nappend b 0 0 1\r\n!\r\nget b\r\nquit\r\n",
        "add c 0 0 1\r\n5\r\nadd c 0 0 1\r\n6\r\ndecr c 2\r\ndelete c\r\nget c\r\nquit\r\n",
        "set d 0 0 1\r\n1\r\ntouch d 100\r\nget d\r\nquit\r\n",
    ],
    half_close: false,
    end: End::Words("shutdown\r\n"),
};

const NGINX: Script = Script {
    lanes: &[
        "GET /text HTTP/1.0\r\n\r\n",
        "GET /text HTTP/1.0\r\nRange: bytes=100000-300000\r\n\r\n",
        "GET /missing HTTP/1.0\r\n\r\n",
    ],
    half_close: false,
    end: End::Signal("QUIT"),
};

const MINI_REDIS: Script = Script {
    lanes: &[
        "*3\r\n$3\r\nset\r\n$1\r\na\r\n$1\r\n1\r\n*2\r\n$3\r\nget\r\n$1\r\na\r\n",
        "*3\r\n$3\r\nset\r\n$1\r\nb\r\n$1\r\n2\r\n*2\r\n$3\r\nget\r\n$1\r\nb\r\n",
        "*2\r\n$3\r\nget\r\n$4\r\nnone\r\n",
    ],
    half_close: true,
    end: End::Signal("INT"),
};

/// All cases.
pub const CASES: &[Case] = &[
    Case { program: "pigz", args: &["-p4", "-b128", "-c", "text"], prepare: input::text, ..PLAIN },
    Case { program: "pbzip2", args: &["-p4", "-b1", "-c", "text"], prepare: input::text, ..PLAIN },
    Case { program: "lbzip2", args: &["-n4", "-1", "-c", "text"], prepare: input::text, ..PLAIN },
    Case {
        program: "xz",
        args: &["-T4", "-1", "--block-size=65536", "-c", "text"],
        prepare: input::text,
        ..PLAIN
    },
    Case {
        program: "zstd",
        args: &["-T4", "-1", "-B524288", "-c", "long"],
        prepare: input::long_text,
        ..PLAIN
    },
    Case { program: "sort", args: &["--parallel=4", "lines"], prepare: input::lines, ..PLAIN },
    Case { program: "make", args: &["-j4", "-s", "-B", "-C", "project"], prepare: input::project, ..PLAIN },
    Case {
        program: "x264",
        args: &["--quiet", "--threads", "4", "--muxer", "raw", "-o", "-", "clip.y4m"],
        prepare: input::clip,
        ..PLAIN
    },
    Case {
        program: "python3",
        args: &["-S", "-E", "threads.py"],
        files: &[("threads.py", include_str!("threads.py"))],
        ..PLAIN
    },
    Case {
        program: "redis-server",
        args: &["--port", "PORT", "--bind", "127.0.0.1", "--save", "", "--io-threads", "4"],
        kind: Kind::Serves(REDIS),
        ..PLAIN
    },
    Case {
        program: "memcached",
        args: &["-A", "-t", "4", "-p", "PORT", "-U", "0", "-l", "127.0.0.1", "-u", "root"],
        kind: Kind::Serves(MEMCACHED),
        ..PLAIN
    },
    Case {
        program: "nginx",
        args: &["-p", ".", "-c", "nginx.conf", "-e", "error.log"],
        files: &[("nginx.conf", include_str!("nginx.conf"))],
        prepare: input::text,
        kind: Kind::Serves(NGINX),
        ..PLAIN
    },
    Case {
        program: "rg",
        args: &["-j4", "-n", "fork [0-9a]", "tree"],
        prepare: input::tree,
        kind: Kind::PrintsLines,
        ..PLAIN
    },
    Case { program: "diskus", args: &["-j4", "-b", "tree"], prepare: input::tree, ..PLAIN },
    Case {
        program: "jql",
        args: &[r#""a"|>"s""#, "data.json"],
        variables: &[("TOKIO_WORKER_THREADS", "4")],
        prepare: input::json,
        ..PLAIN
    },
    Case {
        program: "mini-redis-server",
        args: &["--port", "PORT"],
        variables: &[("TOKIO_WORKER_THREADS", "4"), ("RUST_LOG", "off")],
        kind: Kind::Serves(MINI_REDIS),
        ..PLAIN
    },
];
