//! Responses that are compressed for who can read that: each message for itself and only if it is
//! long, so that no message waits for another, and a stream's small ones cost nothing.
//!
//! What must never enter: what a message says.

use std::io::Write as _;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{BufMut as _, Bytes, BytesMut};
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderMap, HeaderValue, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use tonic::Status;
use tonic::body::Body;

/// Messages below this many bytes are not worth it.
const FROM_BYTES: usize = 4 * 1024;
/// A message's flag and length.
const HEAD_BYTES: usize = 5;
const ENCODING: &str = "grpc-encoding";

/// How messages are compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Coding {
    Zstd,
    Gzip,
}

impl Coding {
    /// What the caller can read; the better one if it reads both.
    pub(crate) fn accepted(headers: &HeaderMap) -> Option<Self> {
        let named = headers.get_all("grpc-accept-encoding");
        let named = named.iter().filter_map(|value| value.to_str().ok());
        let named = named.flat_map(|value| value.split(','));
        let codings = named.filter_map(|name| match name.trim() {
            "zstd" => Some(Self::Zstd),
            "gzip" => Some(Self::Gzip),
            _ => None,
        });
        codings.min_by_key(|coding| *coding as u8)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        }
    }

    /// The message in fewer bytes; nothing if it does not get shorter.
    fn shorten(self, message: &[u8]) -> Option<Vec<u8>> {
        let shorter = match self {
            Self::Zstd => zstd::bulk::compress(message, zstd::DEFAULT_COMPRESSION_LEVEL),
            Self::Gzip => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
                encoder.write_all(message).and_then(|()| encoder.finish())
            }
        };
        shorter.ok().filter(|shorter| shorter.len() < message.len())
    }
}

/// Compresses what a response says. One that is over with its headers says nothing.
pub(crate) fn response(coding: Option<Coding>, response: Response<Body>) -> Response<Body> {
    let headers = response.headers();
    let Some(coding) = coding else {
        return response;
    };
    if headers.contains_key("grpc-status") || headers.contains_key(ENCODING) {
        return response;
    }
    let (mut head, content) = response.into_parts();
    let name = HeaderValue::from_static(coding.name());
    head.headers.insert(ENCODING, name);
    let body = Compressed {
        content,
        coding: Some(coding),
    };
    Response::from_parts(head, Body::new(body))
}

/// A body whose long messages are compressed.
struct Compressed {
    content: Body,
    /// None once a piece was seen that is no row of whole messages: such content passes as it is.
    coding: Option<Coding>,
}

impl HttpBody for Compressed {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = std::task::ready!(Pin::new(&mut self.content).poll_frame(cx));
        let Some(coding) = self.coding else {
            return Poll::Ready(frame);
        };
        let Some(Ok(frame)) = frame else {
            return Poll::Ready(frame);
        };
        let frame = match frame.into_data() {
            Ok(data) => match messages(coding, &data) {
                Row::Short => Frame::data(data),
                Row::Shortened(shorter) => Frame::data(shorter),
                Row::Unknown => {
                    self.coding = None;
                    Frame::data(data)
                }
            },
            Err(frame) => frame,
        };
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.content.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

enum Row {
    /// None of them is long: they pass as they are.
    Short,
    /// The same messages in fewer bytes.
    Shortened(Bytes),
    /// No row of whole messages.
    Unknown,
}

/// A row of whole messages, the long ones compressed.
fn messages(coding: Coding, data: &Bytes) -> Row {
    let mut shorter: Option<BytesMut> = None;
    let mut at = 0;
    while at < data.len() {
        let Some(end) = end_of(&data[at..]).map(|length| at + length) else {
            return Row::Unknown;
        };
        let (is_plain, message) = (data[at] == 0, &data[at + HEAD_BYTES..end]);
        let long = is_plain && message.len() >= FROM_BYTES;
        let compressed = long.then(|| coding.shorten(message)).flatten();
        match (compressed, &mut shorter) {
            (Some(compressed), shorter) => {
                let out = shorter.get_or_insert_with(|| BytesMut::from(&data[..at]));
                out.put_u8(1);
                // It is shorter than a message whose length was told in four bytes.
                out.put_u32(u32::try_from(compressed.len()).unwrap_or(u32::MAX));
                out.put_slice(&compressed);
            }
            (None, Some(out)) => out.put_slice(&data[at..end]),
            (None, None) => {}
        }
        at = end;
    }
    shorter.map_or(Row::Short, |out| Row::Shortened(out.freeze()))
}

/// The length of the first message with its head; nothing if it is not all there.
fn end_of(data: &[u8]) -> Option<usize> {
    let length = data.get(1..HEAD_BYTES)?.try_into().ok()?;
    let length = usize::try_from(u32::from_be_bytes(length)).ok()?;
    let end = HEAD_BYTES.checked_add(length)?;
    (end <= data.len()).then_some(end)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn message(flag: u8, content: &[u8]) -> Vec<u8> {
        let length = u32::try_from(content.len()).unwrap().to_be_bytes();
        [&[flag][..], &length, content].concat()
    }

    fn split(mut data: &[u8]) -> Vec<(u8, Vec<u8>)> {
        let mut found = Vec::new();
        while !data.is_empty() {
            let end = end_of(data).unwrap();
            found.push((data[0], data[HEAD_BYTES..end].to_vec()));
            data = &data[end..];
        }
        found
    }

    fn whole(coding: Coding, (flag, content): &(u8, Vec<u8>)) -> Vec<u8> {
        match (flag, coding) {
            (0, _) => content.clone(),
            (_, Coding::Zstd) => zstd::decode_all(&content[..]).unwrap(),
            (_, Coding::Gzip) => {
                let mut out = Vec::new();
                let mut decoder = flate2::read::GzDecoder::new(&content[..]);
                decoder.read_to_end(&mut out).unwrap();
                out
            }
        }
    }

    #[test]
    fn c62_only_long_messages_of_a_row_are_compressed_and_all_are_whole_and_in_order() {
        let long = vec![b'a'; FROM_BYTES];
        // Nothing makes it shorter.
        let noise: Vec<u8> = (0..FROM_BYTES).map(|_| rand::random()).collect();
        let texts = [&b"one"[..], &long, b"", &noise, &long, b"two"];
        let row: Vec<u8> = texts.iter().flat_map(|text| message(0, text)).collect();
        for coding in [Coding::Zstd, Coding::Gzip] {
            let Row::Shortened(shorter) = messages(coding, &row.clone().into()) else {
                panic!("two are long");
            };
            assert!(shorter.len() < row.len() - FROM_BYTES);
            let found = split(&shorter);
            let flags: Vec<u8> = found.iter().map(|(flag, _)| *flag).collect();
            assert_eq!(flags, [0, 1, 0, 0, 1, 0]);
            let found: Vec<_> = found.iter().map(|one| whole(coding, one)).collect();
            assert_eq!(found, texts);
        }
    }

    #[test]
    fn c62_short_messages_and_what_is_no_row_of_messages_pass_as_they_are() {
        let short = message(0, &[b'a'; FROM_BYTES - 1]);
        assert!(matches!(messages(Coding::Zstd, &short.into()), Row::Short));
        let compressed = message(1, &[b'a'; FROM_BYTES]);
        assert!(matches!(
            messages(Coding::Zstd, &compressed.into()),
            Row::Short
        ));
        let long = message(0, &[b'a'; FROM_BYTES]);
        for cut in [1, 4, 5, long.len() - 1] {
            let part = Bytes::copy_from_slice(&long[..cut]);
            assert!(
                matches!(messages(Coding::Gzip, &part), Row::Unknown),
                "{cut}"
            );
        }
    }

    #[test]
    fn c62_a_caller_gets_the_best_that_it_reads() {
        let told = |value: &'static str| {
            let value = HeaderValue::from_static(value);
            let name = http::HeaderName::from_static("grpc-accept-encoding");
            Coding::accepted(&HeaderMap::from_iter([(name, value)]))
        };
        assert_eq!(told("identity, deflate, gzip"), Some(Coding::Gzip));
        assert_eq!(told("gzip,zstd"), Some(Coding::Zstd));
        assert_eq!(told("identity"), None);
        assert_eq!(Coding::accepted(&HeaderMap::new()), None);
    }
}
