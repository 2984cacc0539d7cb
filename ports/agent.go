package ports

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/server"
)

// Fleet reaches the agents of the registered servers.
type Fleet interface {
	Agent(s server.Server) (Agent, error)
	// Survey looks at a server, whether it is registered or not, and says how far that came. It takes seconds where nothing answers.
	Survey(ctx context.Context, s server.Server) server.Survey
}

// Agent does the work on one database server. What it can be told and asked is in core/command; callers use Do, Tell and Ask.
// Its errors say what is known:
//
//   - *command.Refusal: the agent has answered, and did not do it;
//   - ErrAgentUnreachable: the command was never delivered;
//   - every other error: the outcome is unknown; send the command again.
type Agent interface {
	// Do carries out a command, which may be repeated: the same command has the same outcome.
	Do(ctx context.Context, f Fence, c command.Command) (result json.RawMessage, err error)
	Ask(ctx context.Context, q command.Question) (answer json.RawMessage, err error)
	// Open streams the file that a question is for. It does not wait for others: its caller bounds how many are open.
	Open(ctx context.Context, q command.Question) (File, error)
	// Send asks a question that comes with size bytes, which body streams. Like Open, it does not wait for others. Where body
	// fails, the outcome is unknown, and the error wraps that of body. Nothing is read of body once it has returned.
	Send(ctx context.Context, q command.Question, size int64, body io.Reader) (answer json.RawMessage, err error)
}

// Fence lets an agent refuse a worker that was suspended beyond the end of its lease. A command of no operation has the zero
// value, and one of an operation that the metadata do not keep has no epoch.
type Fence struct {
	OperationID id.OperationID
	Epoch       int64
}

// File is an open file; its holder must close Body.
type File struct {
	Body io.ReadCloser
	Size int64
}

// ErrAgentUnreachable means that a command was never delivered.
var ErrAgentUnreachable = errors.New("the agent cannot be reached")

// NeverHeard reports whether an agent has certainly heard nothing of a command: it was never delivered, or not read, because it
// is of another protocol.
func NeverHeard(err error) bool {
	return errors.Is(err, ErrAgentUnreachable) || command.RefusedFor(err, command.ReasonOtherProtocol)
}

// Do has an agent carry out a command, and returns its result.
func Do[R any](ctx context.Context, a Agent, f Fence, c command.Returning[R]) (R, error) {
	text, err := a.Do(ctx, f, c)
	if err != nil {
		return c.Reply(), err
	}
	return read(text, c.Reply())
}

// Tell is Do for a command without a result.
func Tell(ctx context.Context, a Agent, f Fence, c command.Returning[command.None]) error {
	_, err := Do(ctx, a, f, c)
	return err
}

// Close closes the operation of a fence.
func Close(ctx context.Context, a Agent, f Fence) error {
	return Tell(ctx, a, f, command.Close{OperationID: f.OperationID})
}

// Ask has an agent answer a question.
func Ask[R any](ctx context.Context, a Agent, q command.Asking[R]) (R, error) {
	text, err := a.Ask(ctx, q)
	if err != nil {
		return q.Reply(), err
	}
	return read(text, q.Reply())
}

// Send has an agent answer a question that comes with bytes.
func Send[R any](ctx context.Context, a Agent, q command.Asking[R], size int64, body io.Reader) (R, error) {
	text, err := a.Send(ctx, q, size, body)
	if err != nil {
		return q.Reply(), err
	}
	return read(text, q.Reply())
}

// read decodes what an agent has answered. If that cannot be read, or does not tell what it should, the outcome is unknown.
func read[R any](text json.RawMessage, zero R) (R, error) {
	if _, none := any(zero).(command.None); none {
		return zero, nil
	}
	answer := zero
	if err := json.Unmarshal(text, &answer); err != nil {
		return zero, fmt.Errorf("the outcome at the agent is unknown: its answer is no %T: %w", zero, err)
	}
	if telling, is := any(answer).(command.Telling); is && telling.Told() == "" {
		return zero, fmt.Errorf("the outcome at the agent is unknown: its answer, a %T, does not tell it", zero)
	}
	return answer, nil
}
