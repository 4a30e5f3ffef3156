//! Clients as they should be, and as they should not.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;

use super::*;

/// A server at a socket of its own, and a clock.
struct Scene {
    server: Server,
    directory: PathBuf,
    now: Time,
}

impl Scene {
    fn new(name: &str) -> Scene {
        let directory = std::env::temp_dir().join(format!("sc-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let mut server = Server::new().unwrap();
        server.listen(&directory.join("eth0.sock"), "eth0").unwrap();
        Scene { server, directory, now: Time(1) }
    }

    fn path(&self) -> PathBuf {
        self.directory.join("eth0.sock")
    }

    fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(self.path()).unwrap();
        stream.set_nonblocking(true).unwrap();
        stream
    }

    /// As the daemon's loop does; says how many requests were answered, each with `answer` bytes.
    fn turn(&mut self, answer: usize) -> usize {
        self.server.turn(self.now);
        let mut answered = 0;
        while let Some(asked) = self.server.next(self.now) {
            assert_eq!(asked.interface, "eth0");
            let reply = Reply::error("x".repeat(answer));
            self.server.answer(&asked, &reply, self.now);
            answered += 1;
        }
        answered
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn answer(stream: &UnixStream) -> String {
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line
}

/// True if the other end has closed.
fn is_closed(mut stream: &UnixStream) -> bool {
    matches!(stream.read(&mut [0; 1024]), Ok(0)) || stream.write(b"x").is_err()
}

#[test]
fn the_socket_is_the_owners_alone() {
    let scene = Scene::new("mode");
    let mode = std::fs::metadata(scene.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn each_line_has_its_answer_in_order() {
    let mut scene = Scene::new("lines");
    let mut client = scene.connect();
    scene.turn(1);
    client.write_all(b"a\nb\nc").unwrap();
    assert_eq!(scene.turn(1), 2);
    assert_eq!(scene.turn(1), 0, "half a line is no request");
    client.write_all(b"\n").unwrap();
    assert_eq!(scene.turn(1), 1);
    let lines = BufReader::new(&client).lines().map_while(Result::ok).count();
    assert_eq!(lines, 3);
}

#[test]
fn clients_that_never_read_keep_nobody_waiting() {
    const ANSWER: usize = 100_000;
    let mut scene = Scene::new("deaf");
    let deaf: Vec<UnixStream> = (0..MAX_CONNECTIONS)
        .map(|_| {
            let mut client = scene.connect();
            client.write_all(&b"show\n".repeat(100)).unwrap();
            client
        })
        .collect();
    let answered: usize = (0..100).map(|_| scene.turn(ANSWER)).sum();
    // Answers fill the kernel's buffer of each, and then no more are made.
    assert!(answered < 10 * MAX_CONNECTIONS, "{answered} answers for clients that do not read");
    scene.now += Span::from_millis(1);
    let mut client = scene.connect();
    scene.turn(ANSWER);
    client.write_all(b"show\n").unwrap();
    assert_eq!(scene.turn(10), 1);
    assert!(answer(&client).contains("xxxxxxxxxx"));
    // Nobody waits for the deaf ones for ever.
    scene.now += PATIENCE + Span::from_millis(1);
    scene.turn(ANSWER);
    assert_eq!(scene.server.connections.len(), 1);
    drop(deaf);
}

#[test]
fn clients_that_never_ask_make_room_for_those_who_do() {
    let mut scene = Scene::new("silent");
    let mut silent = Vec::new();
    for _ in 0..3 * MAX_CONNECTIONS {
        silent.push(scene.connect());
        scene.now += Span::from_millis(1);
        scene.turn(1);
        assert!(scene.server.connections.len() <= MAX_CONNECTIONS);
    }
    let closed = silent.iter().filter(|stream| is_closed(stream)).count();
    assert_eq!(closed, 2 * MAX_CONNECTIONS, "the oldest make room");
    let mut client = scene.connect();
    scene.turn(1);
    client.write_all(b"show\n").unwrap();
    assert_eq!(scene.turn(1), 1);
    scene.now += IDLE + Span::from_millis(1);
    scene.turn(1);
    assert!(scene.server.connections.is_empty());
}

#[test]
fn a_request_without_end_is_refused() {
    let mut scene = Scene::new("endless");
    let mut client = scene.connect();
    let mut sent = 0;
    for _ in 0..1000 {
        let Ok(n) = client.write(&[b'a'; 4096]) else { break };
        sent += n;
        scene.turn(1);
        let held: usize = scene.server.connections.iter().map(|c| c.received.len()).sum();
        assert!(held <= MAX_LINE + 4096, "{held} bytes of one request are kept");
    }
    assert!((MAX_LINE..4 * MAX_LINE).contains(&sent), "{sent} bytes were taken");
    assert!(answer(&client).contains("at most 65536 bytes"));
    assert!(scene.server.connections.is_empty());
}

#[test]
fn half_a_request_is_waited_for_a_few_seconds_only() {
    let mut scene = Scene::new("dribble");
    let mut client = scene.connect();
    // A byte now and then is no request.
    for _ in 0..7 {
        scene.now += Span::from_secs(1);
        if client.write(b"a").is_err() {
            break;
        }
        scene.turn(1);
    }
    assert!(scene.server.connections.is_empty());
}

#[test]
fn other_users_are_refused_even_where_the_mode_lets_them_in() {
    let mut scene = Scene::new("others");
    if !rustix::process::geteuid().is_root() {
        println!("NOT RUN: other_users_are_refused_even_where_the_mode_lets_them_in needs root");
        return;
    }
    std::fs::set_permissions(&scene.directory, PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::set_permissions(scene.path(), PermissionsExt::from_mode(0o666)).unwrap();
    let path = scene.path();
    let connect = move || {
        // For this thread alone, as system calls do it.
        let nobody = rustix::process::Uid::from_raw(65_534);
        rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
        let mut stream = UnixStream::connect(path).unwrap();
        stream.write_all(b"down\n").unwrap();
        stream
    };
    let client = std::thread::spawn(connect).join().unwrap();
    assert_eq!(scene.turn(1), 0);
    assert!(answer(&client).contains("user 65534 may not ask"));
    assert!(scene.server.connections.is_empty());
}
