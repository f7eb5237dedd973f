//! Finds what a descriptor of a process is connected to, by `/proc`: an address, a fifo, a terminal.

use std::collections::BTreeSet;
use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::FileTypeExt;

/// What a descriptor is connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// A socket that waits for connections at this address.
    Listens(String),
    /// A socket with a peer.
    Connected(String),
    /// A fifo with a name.
    Fifo(String),
    /// A terminal.
    Terminal(String),
    /// A pipe without a name, whose other end may be anywhere.
    Pipe,
    /// A socket of which the kernel shows nothing, such as one of a pair.
    Socket,
}

impl Endpoint {
    /// Whether the other end is certainly outside the program and its children.
    pub(crate) fn is_outside(&self) -> bool {
        !matches!(self, Endpoint::Pipe | Endpoint::Socket)
    }

    /// What a thread waits for there, such as `a connection to 127.0.0.1:80`.
    pub(crate) fn wish(&self) -> String {
        match self {
            Endpoint::Listens(address) => format!("a connection to {address}"),
            Endpoint::Connected(peer) => format!("{peer}, at the other end of a connection"),
            Endpoint::Fifo(path) => format!("somebody at the other end of the fifo {path}"),
            Endpoint::Terminal(path) => format!("the terminal {path}"),
            Endpoint::Pipe => "somebody at the other end of a pipe".to_owned(),
            Endpoint::Socket => "somebody at the other end of a socket".to_owned(),
        }
    }
}

/// What a descriptor is connected to, with its number. For an `epoll` descriptor, the answer covers the
/// descriptors added to it. Empty for a file or an unconnected descriptor.
pub(crate) fn leads(pid: i32, fd: u64) -> Vec<(u64, Endpoint)> {
    let Some(target) = target(pid, fd) else { return Vec::new() };
    if target.contains("eventpoll") {
        let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).unwrap_or_default();
        return added(&info).into_iter().filter(|&other| other != fd).flat_map(|fd| lead(pid, fd)).collect();
    }
    lead(pid, fd).into_iter().collect()
}

/// The addresses at which a process waits for connections, each with its descriptor.
pub(crate) fn listening(pid: i32) -> Vec<(u64, String)> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let fds: BTreeSet<u64> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    let listens = |fd| match lead(pid, fd) {
        Some((fd, Endpoint::Listens(address))) => Some((fd, address)),
        _ => None,
    };
    fds.into_iter().filter_map(listens).collect()
}

/// The kernel's name of a descriptor: a path, or a name such as `anon_inode:inotify`.
pub(crate) fn target(pid: i32, fd: u64) -> Option<String> {
    let path = fs::read_link(format!("/proc/{pid}/fd/{fd}")).ok()?;
    Some(path.to_string_lossy().into_owned())
}

fn lead(pid: i32, fd: u64) -> Option<(u64, Endpoint)> {
    let target = target(pid, fd)?;
    let lead = if let Some(inode) = target.strip_prefix("socket:[") {
        socket(pid, inode.trim_end_matches(']'))
    } else if target.starts_with("pipe:[") {
        Endpoint::Pipe
    } else {
        let kind = fs::metadata(format!("/proc/{pid}/fd/{fd}")).ok()?.file_type();
        match () {
            () if kind.is_fifo() => Endpoint::Fifo(target),
            () if target.starts_with("/dev/pts/") || target.starts_with("/dev/tty") => {
                Endpoint::Terminal(target)
            }
            () => return None,
        }
    };
    Some((fd, lead))
}

/// The descriptors that `/proc/PID/fdinfo` lists for an `epoll`.
fn added(info: &str) -> Vec<u64> {
    let lines = info.lines().filter_map(|line| line.strip_prefix("tfd:"));
    lines.filter_map(|rest| rest.split_whitespace().next()?.parse().ok()).collect()
}

fn socket(pid: i32, inode: &str) -> Endpoint {
    let table = |name: &str| fs::read_to_string(format!("/proc/{pid}/net/{name}")).unwrap_or_default();
    let internet = ["tcp", "tcp6"].iter().find_map(|name| internet(&table(name), inode));
    internet.or_else(|| local(&table("unix"), inode)).unwrap_or(Endpoint::Socket)
}

/// Finds a socket in `/proc/net/tcp`: both addresses in hexadecimal, the state, and later the inode.
fn internet(table: &str, inode: &str) -> Option<Endpoint> {
    const LISTEN: &str = "0A";
    table.lines().skip(1).find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, own, peer, state, ..] = words.as_slice() else { return None };
        if words.get(9) != Some(&inode) {
            return None;
        }
        Some(match *state {
            LISTEN => Endpoint::Listens(address(own)?),
            _ => Endpoint::Connected(address(peer)?),
        })
    })
}

/// Parses an address such as `0100007F:1F90`, whose words are in this machine's byte order.
fn address(text: &str) -> Option<String> {
    let (host, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let words: Option<Vec<u8>> = (0..host.len() / 8)
        .map(|at| Some(u32::from_str_radix(host.get(8 * at..8 * at + 8)?, 16).ok()?.to_ne_bytes()))
        .collect::<Option<Vec<[u8; 4]>>>()
        .map(|words| words.concat());
    let bytes = words?;
    let ip = match bytes.len() {
        4 => Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?).into(),
        _ => Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).into(),
    };
    Some(SocketAddr::new(ip, port).to_string())
}

/// Finds a socket in `/proc/net/unix`: flags, one of which says that it listens; the inode; perhaps a path.
fn local(table: &str, inode: &str) -> Option<Endpoint> {
    const ACCEPTS: u32 = 1 << 16;
    table.lines().skip(1).find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.get(6) != Some(&inode) {
            return None;
        }
        let flags = u32::from_str_radix(words.get(3)?, 16).ok()?;
        let path = words.get(7).map(|path| (*path).to_owned())?;
        Some(if flags & ACCEPTS != 0 { Endpoint::Listens(path) } else { Endpoint::Connected(path) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::{UnixListener, UnixStream};

    fn own(of: &impl AsRawFd) -> Vec<(u64, Endpoint)> {
        leads(std::process::id() as i32, of.as_raw_fd() as u64)
    }

    fn only(of: &impl AsRawFd) -> Endpoint {
        let mut all = own(of);
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0).1
    }

    #[test]
    fn sockets_of_the_internet() {
        for host in ["127.0.0.1", "::1"] {
            let Ok(listener) = TcpListener::bind((host, 0)) else { continue };
            let address = listener.local_addr().expect("an address");
            assert_eq!(only(&listener), Endpoint::Listens(address.to_string()));
            let fd = listener.as_raw_fd() as u64;
            assert!(listening(std::process::id() as i32).contains(&(fd, address.to_string())));
            let client = TcpStream::connect(address).expect("a connection");
            assert_eq!(only(&client), Endpoint::Connected(address.to_string()));
        }
    }

    #[test]
    fn sockets_of_this_machine() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("socket");
        let listener = UnixListener::bind(&path).expect("a socket");
        assert_eq!(only(&listener), Endpoint::Listens(path.display().to_string()));
        let (one, _other) = UnixStream::pair().expect("a pair");
        assert_eq!(only(&one), Endpoint::Socket);
        assert!(!Endpoint::Socket.is_outside());
    }

    #[test]
    fn pipes_and_files() {
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        assert_eq!(only(&reader), Endpoint::Pipe);
        writer.write_all(b"x").expect("a byte is written");
        assert_eq!(own(&fs::File::open("/proc/self/exe").expect("a file")), Vec::new());
        assert_eq!(leads(std::process::id() as i32, 1 << 40), Vec::new());
    }

    #[test]
    fn descriptors_of_an_epoll() {
        let info =
            "pos:\t0\nflags:\t02\ntfd:        6 events:       19 data: 6\ntfd:       12 events: 1 data: 0\n";
        assert_eq!(added(info), [6, 12]);
    }

    #[test]
    fn addresses() {
        assert_eq!(address("0100007F:18EB").as_deref(), Some("127.0.0.1:6379"));
        assert_eq!(address("00000000000000000000000001000000:0050").as_deref(), Some("[::1]:80"));
        assert_eq!(address("xyz"), None);
    }
}
