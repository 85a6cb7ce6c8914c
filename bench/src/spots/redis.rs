//! A Redis server of this process's own, where one is installed; it ends with its handle.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::Failure;

pub struct Server {
    process: Child,
    port: u16,
    _folder: TempDir,
}

impl Server {
    /// `None` where there is no program of that name. `ZLINK_REDIS_SERVER` names another, such as valkey-server.
    pub fn start() -> Result<Option<Self>, Failure> {
        let program = std::env::var("ZLINK_REDIS_SERVER").unwrap_or_else(|_| "redis-server".to_owned());
        // What was free a moment ago may be somebody else's by now.
        for _ in 0..20 {
            let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
            let folder = TempDir::new()?;
            // As a server that keeps what it answered when it is killed.
            let process = Command::new(&program)
                .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""])
                .args(["--appendonly", "yes", "--appendfsync", "everysec", "--dir"])
                .arg(folder.path())
                .stdout(Stdio::null())
                .spawn();
            match process {
                Ok(process) => {
                    let mut server = Self { process, port, _folder: folder };
                    if server.is_up()? {
                        return Ok(Some(server));
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
        Err("no port is free for a Redis server".into())
    }

    fn is_up(&mut self) -> Result<bool, Failure> {
        let until = Instant::now() + Duration::from_secs(10);
        while self.process.try_wait()?.is_none() {
            if TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok() {
                return Ok(true);
            }
            if Instant::now() > until {
                return Err("the Redis server does not come up".into());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(false)
    }

    pub fn address(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to do.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
