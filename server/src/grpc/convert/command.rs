//! Commands and their typed answers.

use sessionplane::v1 as wire;
use sessionplane_core::contract::DispatchRequest;
use sessionplane_core::domain::command::{
    Acceptance, Command, CommandKind, DispatchAnswer, Rejection, RejectionCode,
};
use sessionplane_core::domain::error::CallError;
use wire::dispatch_request::Command as WireCommand;
use wire::dispatch_response::Answer;

use super::{data, field, input, interaction, session};

/// A request to modulate a run.
pub(crate) fn request(request: wire::DispatchRequest) -> Result<DispatchRequest, CallError> {
    Ok(DispatchRequest {
        session: session::reference(request.session)?,
        expected_run: field::optional_id("expected_run_id", &request.expected_run_id)?,
        command: command(request.command)?,
    })
}

fn command(command: Option<WireCommand>) -> Result<Command, CallError> {
    match command {
        Some(WireCommand::Steer(steer)) => Ok(Command::Steer {
            text: steer.text.into(),
            given: data::given("steer", steer.typed, steer.trust, steer.data)?,
        }),
        Some(WireCommand::FollowUp(follow_up)) => Ok(Command::FollowUp {
            text: follow_up.text.into(),
            given: data::given(
                "follow_up",
                follow_up.typed,
                follow_up.trust,
                follow_up.data,
            )?,
        }),
        Some(WireCommand::Abort(wire::Abort {})) => Ok(Command::Abort),
        Some(WireCommand::Compact(compact)) => {
            let text = compact.instructions;
            let instructions = (!text.is_empty()).then(|| text.into());
            Ok(Command::Compact { instructions })
        }
        Some(WireCommand::SetModel(chosen)) => Ok(Command::SetModel {
            model: chosen.model,
        }),
        Some(WireCommand::SetThinking(chosen)) => Ok(Command::SetThinking {
            level: chosen.level,
        }),
        Some(WireCommand::Navigate(navigate)) => Ok(Command::Navigate {
            entry: field::id("navigate.entry_id", &navigate.entry_id)?,
        }),
        Some(WireCommand::Respond(respond)) => Ok(Command::Respond {
            interaction: field::id("respond.interaction_id", &respond.interaction_id)?,
            answer: interaction::answer(respond.answer)?,
        }),
        None => {
            let known = CommandKind::ALL.map(CommandKind::as_str).join("`, `");
            Err(CallError::invalid(
                "command",
                format!("is not set, or not known to this server, which knows `{known}`"),
            ))
        }
    }
}

/// The answer to a command.
pub(crate) fn answer(answer: &DispatchAnswer) -> wire::DispatchResponse {
    let answer = match answer {
        DispatchAnswer::Accepted(acceptance) => Answer::Accepted(accepted(acceptance)),
        DispatchAnswer::Rejected(rejection) => Answer::Rejected(rejected(rejection)),
    };
    wire::DispatchResponse {
        answer: Some(answer),
    }
}

fn accepted(acceptance: &Acceptance) -> wire::DispatchAccepted {
    let input = acceptance.input;
    let entry = input.and_then(|input| input.entry());
    let cause = input.and_then(|input| input.discarded());
    wire::DispatchAccepted {
        run_id: acceptance.run.map(|id| id.to_string()).unwrap_or_default(),
        input_id: input.map(|input| input.id.to_string()).unwrap_or_default(),
        fate: input
            .map_or(wire::InputFate::Unspecified, |known| {
                input::fate(known.fate)
            })
            .into(),
        entry_id: entry.map(|id| id.to_string()).unwrap_or_default(),
        discard_cause: cause
            .map_or(wire::DiscardCause::Unspecified, input::cause)
            .into(),
    }
}

/// A typed no.
pub(crate) fn rejected(rejection: &Rejection) -> wire::DispatchRejected {
    wire::DispatchRejected {
        code: code(rejection.code).into(),
        message: rejection.message.clone(),
        retryable: rejection.retryable,
    }
}

fn code(code: RejectionCode) -> wire::RejectionCode {
    match code {
        RejectionCode::UnsupportedCapability => wire::RejectionCode::UnsupportedCapability,
        RejectionCode::NoActiveRun => wire::RejectionCode::NoActiveRun,
        RejectionCode::RunCommandFailed => wire::RejectionCode::RunCommandFailed,
        RejectionCode::InvalidCommand => wire::RejectionCode::InvalidCommand,
        RejectionCode::NoSuchInteraction => wire::RejectionCode::NoSuchInteraction,
        RejectionCode::SessionBusy => wire::RejectionCode::SessionBusy,
        RejectionCode::BoundaryCommandFailed => wire::RejectionCode::BoundaryCommandFailed,
        RejectionCode::NothingToCompact => wire::RejectionCode::NothingToCompact,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unset_command_is_refused_with_the_ones_that_are_known() {
        let error = command(None).unwrap_err();
        assert_eq!(error.violations[0].field, "command");
        for kind in CommandKind::ALL {
            assert!(error.message.contains(kind.as_str()), "{}", error.message);
        }
    }

    #[test]
    fn every_rejection_code_has_the_name_that_the_contract_gives_it() {
        use RejectionCode as Code;
        for rejection in [
            Code::UnsupportedCapability,
            Code::NoActiveRun,
            Code::RunCommandFailed,
            Code::InvalidCommand,
            Code::NoSuchInteraction,
            Code::SessionBusy,
            Code::BoundaryCommandFailed,
            Code::NothingToCompact,
        ] {
            let name = code(rejection).as_str_name().to_ascii_lowercase();
            assert_eq!(name, format!("rejection_code_{}", rejection.as_str()));
        }
    }
}
