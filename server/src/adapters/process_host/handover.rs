//! One message with descriptors beside it, over a socket: what is to be set up, and with what.

use std::io::{self, IoSlice, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use super::order::Plan;

/// Descriptors that go with a message: standard input, output and error, and the folder.
const DESCRIPTORS: usize = 4;
/// The largest message. It fits into what a socket holds, so that giving it never waits.
const BYTES: usize = 64 * 1024;

/// What a program gets.
pub(super) struct Streams<D> {
    pub(super) input: D,
    pub(super) output: D,
    pub(super) error: D,
    pub(super) folder: D,
}

/// Gives a plan and what goes with it.
///
/// # Errors
/// When the plan is too large, or the other end is gone.
pub(super) fn give(
    socket: &UnixStream,
    plan: &Plan,
    streams: &Streams<BorrowedFd<'_>>,
) -> io::Result<()> {
    let text = serde_json::to_vec(plan).map_err(io::Error::other)?;
    let Some(length) = u32::try_from(text.len())
        .ok()
        .filter(|_| text.len() <= BYTES)
    else {
        let problem = format!(
            "arguments and environment have {} bytes, at most {BYTES}",
            text.len()
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
    };
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    let descriptors = [streams.input, streams.output, streams.error, streams.folder];
    if !beside.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::Error::other("the descriptors have no room"));
    }
    // They come with the first bytes.
    let head = [IoSlice::new(&length.to_be_bytes())].map(|slice| slice.to_vec());
    let sent = sendmsg(
        socket,
        &[IoSlice::new(&head[0])],
        &mut beside,
        SendFlags::NOSIGNAL,
    )?;
    if sent != head[0].len() {
        return Err(io::ErrorKind::WriteZero.into());
    }
    (&mut &*socket).write_all(&text)
}

/// Takes what [`give`] gives. Blocks until it is there.
///
/// # Errors
/// When the other end is gone, or says something else.
pub(super) fn take(socket: &UnixStream) -> io::Result<(Plan, Streams<OwnedFd>)> {
    let mut length = [0; 4];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let mut into = [IoSliceMut::new(&mut length)];
    let received = recvmsg(socket, &mut into, &mut beside, RecvFlags::CMSG_CLOEXEC)?;
    if received.bytes != 4 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut descriptors = Vec::new();
    for message in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(given) = message {
            descriptors.extend(given);
        }
    }
    let descriptors: [OwnedFd; DESCRIPTORS] = descriptors
        .try_into()
        .map_err(|_| io::Error::other("descriptors are missing"))?;
    let [input, output, error, folder] = descriptors;
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
    if length > BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut text = vec![0; length];
    (&mut &*socket).read_exact(&mut text)?;
    let plan = serde_json::from_slice(&text).map_err(io::Error::other)?;
    let streams = Streams {
        input,
        output,
        error,
        folder,
    };
    Ok((plan, streams))
}
