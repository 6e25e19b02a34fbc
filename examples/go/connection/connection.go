// Package connection says where the server is, who calls, and when a call may be repeated.
package connection

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

const mostAttempts = 8

type bearer string

func (token bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(token)}, nil
}

// The connection is plain text, for this machine only. Elsewhere use credentials.NewTLS, and say true here.
func (bearer) RequireTransportSecurity() bool { return false }

// Connect makes a connection to SESSIONPLANE_ADDRESS (HOST:PORT or unix:/PATH) for whoever the token names.
func Connect() (*grpc.ClientConn, error) {
	address := strings.TrimPrefix(os.Getenv("SESSIONPLANE_ADDRESS"), "http://")
	if address == "" {
		address = "127.0.0.1:50051"
	}
	token := os.Getenv("SESSIONPLANE_TOKEN")
	if token == "" {
		path := os.Getenv("SESSIONPLANE_TOKEN_FILE")
		if path == "" {
			path = filepath.Join(os.Getenv("HOME"), ".local/state/sessionplane/owner.token")
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		token = strings.TrimSpace(string(text))
	}
	return grpc.NewClient(address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithPerRPCCredentials(bearer(token)))
}

// PauseOrGiveUp waits a little longer each time before a call is repeated, and returns what will not get better.
func PauseOrGiveUp(err error, attempt int) error {
	switch status.Code(err) {
	case codes.Unavailable, codes.Internal, codes.Canceled:
		// The connection broke, or a proxy cut it. What the call started goes on.
	default:
		return err // a refusal: asking again would not help
	}
	if attempt >= mostAttempts {
		return err
	}
	fmt.Fprintf(os.Stderr, "[lost the server: %v; asking again]\n", status.Convert(err).Message())
	pause := min(5*time.Second, 200*time.Millisecond<<attempt)
	time.Sleep(pause/2 + rand.N(pause/2))
	return nil
}
