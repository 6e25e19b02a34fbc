// Starts a run and prints the answer as it comes: invoke SESSION PROMPT
package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sessionplane.invalid/example/connection"
	pb "sessionplane.invalid/example/gen/sessionplane/v1"
)

// answer prints text once, also when a rejoined run tells it again from the start.
type answer struct {
	shown   map[string]int // bytes of each message that are on the screen
	arrived map[string]int // bytes of each message that this stream has told
}

func (a *answer) text(message, piece string) {
	start := a.arrived[message]
	a.arrived[message] = start + len(piece)
	if old := a.shown[message] - start; old < len(piece) {
		fmt.Print(piece[max(0, old):])
		a.shown[message] = a.arrived[message]
	}
}

// follow reads one stream to its terminal.
func (a *answer) follow(events grpc.ServerStreamingClient[pb.InvokeResponse]) (*pb.InvokeEvent, error) {
	for {
		response, err := events.Recv()
		if err == io.EOF {
			return nil, status.Error(codes.Unavailable, "the stream ended without a terminal")
		} else if err != nil {
			return nil, err
		}
		switch event := response.Event.Event.(type) {
		case *pb.InvokeEvent_Accepted:
			a.arrived = map[string]int{}
			again := ""
			if event.Accepted.Joined {
				again = ", rejoined"
			}
			fmt.Fprintf(os.Stderr, "[run %s%s]\n", event.Accepted.RunId, again)
		case *pb.InvokeEvent_Resumed: // part of it is no longer retained
			fmt.Fprintf(os.Stderr, "[%d events were missed]\n", event.Resumed.Skipped)
		case *pb.InvokeEvent_Text:
			a.text(event.Text.MessageId, event.Text.Text)
		case *pb.InvokeEvent_ToolStarted:
			fmt.Fprintf(os.Stderr, "[tool %s %s]\n", event.ToolStarted.Name, event.ToolStarted.InputJson)
		case *pb.InvokeEvent_InteractionRequested:
			fmt.Fprintln(os.Stderr, "[it asks: answer with `sessionctl answer`]")
		case *pb.InvokeEvent_Completed, *pb.InvokeEvent_Failed:
			return response.Event, nil
		}
	}
}

// missed prints the rest of a run that settled while its caller was away: what it said is in its entries.
func (a *answer) missed(control pb.SessionControlClient, session *pb.SessionRef, runID string) error {
	page := &pb.ListEntriesRequest{Session: session}
	for {
		entries, err := control.ListEntries(context.Background(), page)
		if err != nil {
			return err
		}
		for _, entry := range entries.Entries {
			if said := entry.GetAssistant(); said != nil && entry.RunId == runID {
				a.arrived = map[string]int{}
				a.text(said.MessageId, said.Text)
			}
		}
		if !entries.HasMore {
			return nil
		}
		page.Since = entries.NextSince
	}
}

func run(session, prompt string) error {
	conn, err := connection.Connect()
	if err != nil {
		return err
	}
	defer conn.Close()
	request := &pb.InvokeRequest{
		Session: &pb.SessionRef{Ref: &pb.SessionRef_Name{Name: session}},
		Prompt:  &pb.Prompt{Text: prompt},
		// However often this request is sent, it starts one run.
		RequestId: rand.Text(),
	}
	a := &answer{shown: map[string]int{}}
	for attempt := 0; ; attempt++ {
		var end *pb.InvokeEvent
		events, err := pb.NewInvokeClient(conn).Invoke(context.Background(), request)
		if err == nil {
			end, err = a.follow(events)
		}
		if err == nil && attempt > 0 {
			record := end.GetCompleted().GetRun()
			if record == nil {
				record = end.GetFailed().GetRun()
			}
			err = a.missed(pb.NewSessionControlClient(conn), request.Session, record.GetRunId())
		}
		if err == nil {
			fmt.Println()
			if failed := end.GetFailed(); failed != nil {
				return fmt.Errorf("failed: %s: %s", failed.Code, failed.Details)
			}
			return nil
		}
		if err := connection.PauseOrGiveUp(err, attempt); err != nil {
			return err
		}
	}
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: invoke SESSION PROMPT")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
