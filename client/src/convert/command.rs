//! Commands and their answers.

use sessionplane::v1::{self, dispatch_request, dispatch_response::Answer};
use sessionplane_core::contract::DispatchRequest;
use sessionplane_core::domain::command::{
    Acceptance, AcceptedInput, Command, DispatchAnswer, Rejection, RejectionCode,
};
use sessionplane_core::domain::ids::RequestId;
use sessionplane_core::domain::input::InputFate;

use super::field::{Malformed, id, optional_id, required};
use super::{data, interaction, pending, session};

/// Writes a command.
pub(crate) fn request(request: DispatchRequest, request_id: &RequestId) -> v1::DispatchRequest {
    use dispatch_request::Command as Wire;
    let command = match request.command {
        Command::Steer { text, given } => Wire::Steer(v1::Steer {
            text: text.to_string(),
            typed: given.typed,
            trust: data::at_most(&given),
            data: data::given(&given),
        }),
        Command::FollowUp { text, given } => Wire::FollowUp(v1::FollowUp {
            text: text.to_string(),
            typed: given.typed,
            trust: data::at_most(&given),
            data: data::given(&given),
        }),
        Command::Abort => Wire::Abort(v1::Abort {}),
        Command::Compact { instructions } => Wire::Compact(v1::Compact {
            instructions: instructions.as_deref().unwrap_or_default().to_owned(),
        }),
        Command::SetModel { model } => Wire::SetModel(v1::SetModel { model }),
        Command::SetThinking { level } => Wire::SetThinking(v1::SetThinking { level }),
        Command::Navigate { entry } => Wire::Navigate(v1::Navigate {
            entry_id: entry.to_string(),
        }),
        Command::Respond {
            interaction: id,
            answer,
        } => Wire::Respond(v1::Respond {
            interaction_id: id.to_string(),
            answer: Some(interaction::answer(answer)),
        }),
    };
    v1::DispatchRequest {
        session: Some(session::reference(&request.session)),
        request_id: request_id.to_string(),
        expected_run_id: request
            .expected_run
            .map_or_else(String::new, |run| run.to_string()),
        command: Some(command),
    }
}

/// Reads the answer.
pub(crate) fn answer(answer: v1::DispatchResponse) -> Result<DispatchAnswer, Malformed> {
    Ok(match required("answer", answer.answer)? {
        Answer::Accepted(accepted) => DispatchAnswer::Accepted(acceptance(&accepted)?),
        Answer::Rejected(rejected) => DispatchAnswer::Rejected(rejection(rejected)),
    })
}

fn acceptance(accepted: &v1::DispatchAccepted) -> Result<Acceptance, Malformed> {
    let input = optional_id("accepted.input_id", &accepted.input_id)?;
    let input = match input {
        Some(id) => Some(AcceptedInput {
            id,
            fate: fate(accepted)?,
        }),
        None => None,
    };
    Ok(Acceptance {
        run: optional_id("accepted.run_id", &accepted.run_id)?,
        input,
    })
}

/// A fate this client does not know is told as pending: the events say more.
fn fate(accepted: &v1::DispatchAccepted) -> Result<InputFate, Malformed> {
    Ok(match accepted.fate() {
        v1::InputFate::Delivered => {
            InputFate::Delivered(id("accepted.entry_id", &accepted.entry_id)?)
        }
        v1::InputFate::Discarded => InputFate::Discarded(pending::cause(accepted.discard_cause())),
        v1::InputFate::Pending | v1::InputFate::Unspecified => InputFate::Pending,
    })
}

/// A typed no.
pub(crate) fn rejection(rejected: v1::DispatchRejected) -> Rejection {
    use v1::RejectionCode as Wire;
    let code = match rejected.code() {
        Wire::UnsupportedCapability => RejectionCode::UnsupportedCapability,
        Wire::NoActiveRun => RejectionCode::NoActiveRun,
        Wire::RunCommandFailed => RejectionCode::RunCommandFailed,
        // A code this client does not know is a no all the same; its words say why.
        Wire::InvalidCommand | Wire::Unspecified => RejectionCode::InvalidCommand,
        Wire::NoSuchInteraction => RejectionCode::NoSuchInteraction,
        Wire::SessionBusy => RejectionCode::SessionBusy,
        Wire::BoundaryCommandFailed => RejectionCode::BoundaryCommandFailed,
        Wire::NothingToCompact => RejectionCode::NothingToCompact,
    };
    Rejection {
        code,
        message: rejected.message,
        retryable: rejected.retryable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c17_an_answer_is_accepted_or_rejected_and_nothing_else() {
        let empty = v1::DispatchResponse { answer: None };
        assert_eq!(answer(empty), Err(Malformed::missing("answer")));
    }

    #[test]
    fn c64_a_rejection_with_an_unknown_code_stays_a_rejection() {
        let rejected = v1::DispatchRejected {
            code: 99,
            message: "not today".to_owned(),
            retryable: true,
        };
        let read = answer(v1::DispatchResponse {
            answer: Some(Answer::Rejected(rejected)),
        });
        let Ok(DispatchAnswer::Rejected(rejection)) = read else {
            panic!("not a rejection: {read:?}");
        };
        assert_eq!(rejection.message, "not today");
        assert!(rejection.retryable);
    }
}
