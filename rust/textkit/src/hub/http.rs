//! Requests to the hub that can be watched and given up at any moment.

use std::sync::mpsc::{sync_channel, Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;

use ureq::config::RedirectAuthHeaders;
use ureq::http::{HeaderMap, Response};
use ureq::tls::{parse_pem, PemItem, RootCerts, TlsConfig};
use ureq::{Agent, Body};

use super::settings::{Settings, Token};
use crate::error::{io_in_words, Error, Result};

const TICK: Duration = Duration::from_millis(100);
const CONNECT: Duration = Duration::from_secs(15);
/// Nothing came for so long: the connection is dead.
const SILENCE: Duration = Duration::from_secs(30);
const CHUNK: usize = 256 * 1024;
/// Chunks that wait for the disk.
const QUEUE: usize = 4;

/// Called several times a second; false gives up.
pub type Tick<'a> = &'a mut dyn FnMut() -> bool;

/// Why no answer, or no whole one, came.
#[derive(Debug)]
pub enum Failure {
    Cancelled,
    /// The reason in words.
    Network(String),
}

pub struct Client {
    agent: Agent,
    token: Option<Token>,
}

pub struct Answer {
    pub status: u16,
    headers: HeaderMap,
    parts: Receiver<Part>,
}

enum Part {
    Head(u16, Box<HeaderMap>),
    Bytes(Vec<u8>),
    End,
    Failed(String),
}

impl Client {
    pub fn new(settings: &Settings) -> Result<Self> {
        let endpoint = &settings.endpoint;
        if !["http://", "https://"]
            .iter()
            .any(|s| endpoint.starts_with(s))
        {
            return Err(Error::invalid(format!(
                "HF_ENDPOINT is '{endpoint}', which is no http(s):// address"
            )));
        }
        let tls = match &settings.certificates {
            Some(file) => {
                TlsConfig::builder().root_certs(certificates(file)?).build()
            }
            None => TlsConfig::default(),
        };
        let version = env!("CARGO_PKG_VERSION");
        let agent = Agent::config_builder()
            .user_agent(format!("afterglow-textkit/{version}"))
            .tls_config(tls)
            .http_status_as_error(false)
            .accept_encoding("identity")
            .redirect_auth_headers(RedirectAuthHeaders::SameHost)
            .timeout_resolve(Some(CONNECT))
            .timeout_connect(Some(CONNECT))
            .timeout_per_read(Some(SILENCE))
            .timeout_per_write(Some(SILENCE))
            .build()
            .into();
        Ok(Self {
            agent,
            token: settings.token.clone(),
        })
    }

    pub fn token(&self) -> Option<&Token> {
        self.token.as_ref()
    }

    /// Asks for what lies behind a URL, from a byte on, following redirects.
    /// Returns once the head of the answer is there, whatever its status.
    pub fn get(
        &self,
        url: &str,
        from: u64,
        tick: Tick,
    ) -> std::result::Result<Answer, Failure> {
        let mut request = self.agent.get(url);
        if let Some(token) = &self.token {
            let value = format!("Bearer {}", token.secret);
            request = request.header("authorization", value);
        }
        if from > 0 {
            request = request.header("range", format!("bytes={from}-"));
        }
        Answer::start(move || request.call(), tick)
    }

    /// Asks for the head only, and not of the place that a redirect to
    /// another host leads to: the hub's own answer tells what a file is.
    pub fn head(
        &self,
        url: &str,
        tick: Tick,
    ) -> std::result::Result<Answer, Failure> {
        let mut request = self
            .agent
            .head(url)
            .config()
            .max_redirects(0)
            .max_redirects_will_error(false)
            .build();
        if let Some(token) = &self.token {
            let value = format!("Bearer {}", token.secret);
            request = request.header("authorization", value);
        }
        Answer::start(move || request.call(), tick)
    }
}

fn certificates(file: &std::path::Path) -> Result<RootCerts> {
    let wrong = |why: String| {
        Error::invalid(format!(
            "the certificates in {} (SSL_CERT_FILE or REQUESTS_CA_BUNDLE) \
             cannot be used: {why}",
            file.display()
        ))
    };
    let pem = std::fs::read(file).map_err(|e| wrong(io_in_words(&e)))?;
    let mut found = Vec::new();
    for item in parse_pem(&pem) {
        if let PemItem::Certificate(one) =
            item.map_err(|e| wrong(e.to_string()))?
        {
            found.push(one);
        }
    }
    if found.is_empty() {
        return Err(wrong("there are none in it".to_owned()));
    }
    Ok(RootCerts::from(found))
}

impl Answer {
    /// The request runs on a thread of its own: whoever gives up is free at
    /// once, and the thread ends when it finds nobody listening or when its
    /// connection times out.
    fn start(
        call: impl FnOnce() -> std::result::Result<Response<Body>, ureq::Error>
            + Send
            + 'static,
        tick: Tick,
    ) -> std::result::Result<Self, Failure> {
        let (sender, parts) = sync_channel(QUEUE);
        std::thread::Builder::new()
            .name("hub".to_owned())
            .spawn(move || read(call, &sender))
            .map_err(|e| Failure::Network(format!("no thread: {e}")))?;
        match next(&parts, tick)? {
            Part::Head(status, headers) => Ok(Self {
                status,
                headers: *headers,
                parts,
            }),
            Part::Failed(why) => Err(Failure::Network(why)),
            Part::Bytes(_) | Part::End => {
                Err(Failure::Network("the answer has no head".to_owned()))
            }
        }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The next bytes of the body; None at its end.
    pub fn read(
        &mut self,
        tick: Tick,
    ) -> std::result::Result<Option<Vec<u8>>, Failure> {
        match next(&self.parts, tick)? {
            Part::Bytes(bytes) => Ok(Some(bytes)),
            Part::Failed(why) => Err(Failure::Network(why)),
            Part::Head(..) | Part::End => Ok(None),
        }
    }

    /// The whole body.
    /// Errors: a body of more than `most` bytes counts as broken off.
    pub fn read_all(
        &mut self,
        most: usize,
        tick: Tick,
    ) -> std::result::Result<Vec<u8>, Failure> {
        let mut all = Vec::new();
        while let Some(bytes) = self.read(tick)? {
            all.extend(bytes);
            if all.len() > most {
                return Err(Failure::Network(format!(
                    "the answer has more than {most} bytes"
                )));
            }
        }
        Ok(all)
    }
}

fn next(
    parts: &Receiver<Part>,
    tick: Tick,
) -> std::result::Result<Part, Failure> {
    loop {
        let part = parts.recv_timeout(TICK);
        if !tick() {
            return Err(Failure::Cancelled);
        }
        match part {
            Ok(part) => return Ok(part),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                let why = "the request's thread has died".to_owned();
                return Err(Failure::Network(why));
            }
        }
    }
}

/// Sends an answer part by part. A failed send means that nobody listens.
fn read(
    call: impl FnOnce() -> std::result::Result<Response<Body>, ureq::Error>,
    sender: &SyncSender<Part>,
) {
    let (head, body) = match call() {
        Ok(response) => response.into_parts(),
        Err(error) => {
            let _ = sender.send(Part::Failed(in_words(&error)));
            return;
        }
    };
    let headers = Box::new(head.headers);
    let status = head.status.as_u16();
    if sender.send(Part::Head(status, headers)).is_err() {
        return;
    }
    let mut reader = body.into_reader();
    loop {
        let mut bytes = vec![0; CHUNK];
        let part = match std::io::Read::read(&mut reader, &mut bytes) {
            Ok(0) => Part::End,
            Ok(count) => {
                bytes.truncate(count);
                Part::Bytes(bytes)
            }
            Err(error) => Part::Failed(io_in_words(&error)),
        };
        let last = !matches!(part, Part::Bytes(_));
        if sender.send(part).is_err() || last {
            return;
        }
    }
}

fn in_words(error: &ureq::Error) -> String {
    match error {
        ureq::Error::HostNotFound => "the host is not known".to_owned(),
        ureq::Error::ConnectionFailed => "no connection".to_owned(),
        ureq::Error::Timeout(_) => "no answer in time".to_owned(),
        ureq::Error::Io(error) => io_in_words(error),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::testing::Folder;

    #[test]
    fn settings_that_cannot_work_are_named() {
        let folder = Folder::new();
        let empty = folder.path().join("empty.pem");
        std::fs::write(&empty, "").unwrap();
        let good = Settings::from(|_| None);
        assert!(Client::new(&good).is_ok());
        let message =
            |settings: Settings| Client::new(&settings).err().unwrap().message;
        let endpoint = "huggingface.co".to_owned();
        let text = message(Settings {
            endpoint,
            ..good.clone()
        });
        assert!(text.contains("HF_ENDPOINT is 'huggingface.co'"), "{text}");
        for file in [empty, folder.path().join("none.pem")] {
            let certificates = Some(file.clone());
            let text = message(Settings {
                certificates,
                ..good.clone()
            });
            assert!(text.contains(file.to_str().unwrap()), "{text}");
            assert!(text.contains("SSL_CERT_FILE"), "{text}");
        }
    }
}
