// Prints what happens in a session, from its first entry on: observe SESSION [RUNS]; it ends after so many runs.
package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"unicode"

	"google.golang.org/protobuf/reflect/protoreflect"

	"sessionplane.invalid/example/connection"
	pb "sessionplane.invalid/example/gen/sessionplane/v1"
)

// observer is what has to be remembered to come back without a hole.
type observer struct {
	session  string
	position *pb.Position // of the last live event
	entry    string       // the last durable entry
}

func (o *observer) request() *pb.EventsRequest {
	return &pb.EventsRequest{
		Session: &pb.SessionRef{Ref: &pb.SessionRef_Name{Name: o.session}},
		Resume:  o.position,
		// Used where the server no longer has the events after the position.
		EntriesSince: o.entry,
	}
}

// take prints one item; true if it was the end of a run.
func (o *observer) take(response *pb.EventsResponse) bool {
	switch item := response.Item.(type) {
	case *pb.EventsResponse_Subscribed:
		if item.Subscribed.Gap {
			fmt.Println("[some live events are gone; the entries follow]")
		}
	case *pb.EventsResponse_Entries:
		for _, entry := range item.Entries.Entries {
			o.entry = entry.Id
			fmt.Println("entry", told(entry))
		}
	case *pb.EventsResponse_Snapshot:
		o.position = item.Snapshot.Position
	case *pb.EventsResponse_Heartbeat:
		o.position = item.Heartbeat.Position
	case *pb.EventsResponse_Event:
		o.position = &pb.Position{Epoch: item.Event.Epoch, Seq: item.Event.Seq}
		event := item.Event.Event
		if appended := event.GetEntryAppended(); appended != nil {
			o.entry = appended.Entry.Id
			fmt.Println("event", event.Type, told(appended.Entry))
		} else {
			fmt.Println("event", event.Type)
		}
		return event.Type == "run_settled"
	}
	return false
}

const mostCharacters = 100

// told is an entry in one line: its id, what it is, and the beginning of what it says.
func told(entry *pb.Entry) string {
	var text string
	switch {
	case entry.GetUser() != nil:
		text = entry.GetUser().Text
	case entry.GetAssistant() != nil:
		text = entry.GetAssistant().Text
	case entry.GetNotice() != nil:
		text = entry.GetNotice().Text
	case entry.GetTool() != nil:
		text = entry.GetTool().Name + " " + entry.GetTool().InputJson
	case entry.GetSettings() != nil:
		text = entry.GetSettings().GetModel() + " " + entry.GetSettings().GetThinkingLevel()
	case entry.GetCompaction() != nil:
		text = entry.GetCompaction().Summary
	}
	// What others wrote may hold codes that a terminal obeys.
	text = strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text))
	if characters := []rune(text); len(characters) > mostCharacters {
		text = string(characters[:mostCharacters]) + "..."
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", entry.Id, body(entry), text))
}

// body names what an entry holds, also where this program was built before there were such entries.
func body(entry *pb.Entry) protoreflect.Name {
	message := entry.ProtoReflect()
	if field := message.WhichOneof(message.Descriptor().Oneofs().ByName("body")); field != nil {
		return field.Name()
	}
	return "unknown"
}

func run(session string, runs int) error {
	conn, err := connection.Connect()
	if err != nil {
		return err
	}
	defer conn.Close()
	o := &observer{session: session}
	for attempt := 0; ; attempt++ {
		// It has no end of its own: heartbeats come while nothing happens.
		events, err := pb.NewSessionControlClient(conn).Events(context.Background(), o.request())
		for err == nil {
			var response *pb.EventsResponse
			if response, err = events.Recv(); err == nil {
				attempt = 0
				if o.take(response) {
					runs--
				}
				if runs == 0 {
					return nil
				}
			}
		}
		if err := connection.PauseOrGiveUp(err, attempt); err != nil {
			return err
		}
	}
}

func main() {
	runs, bad := math.MaxInt, len(os.Args) < 2 || len(os.Args) > 3
	if len(os.Args) == 3 {
		var err error
		runs, err = strconv.Atoi(os.Args[2])
		bad = bad || err != nil
	}
	if bad {
		fmt.Fprintln(os.Stderr, "usage: observe SESSION [RUNS]")
		os.Exit(2)
	}
	if err := run(os.Args[1], runs); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
