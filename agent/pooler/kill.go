package pooler

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// killsAtOnce bounds one piece of commands, so that neither they nor their answers fill a socket.
const killsAtOnce = 250

// KillClients closes clients by their ID; it is no error if one is already gone.
func (c *Console) KillClients(ctx context.Context, ids ...string) error {
	for some := range slices.Chunk(ids, killsAtOnce) {
		if _, err := c.kill(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

// kill closes clients, and says of each whether it was still there. PgBouncer carries out what comes in one piece at one go; a
// command on its own waits for its turn behind everybody who logs in.
func (c *Console) kill(ctx context.Context, ids []string) (closed []bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	var commands []byte
	for _, id := range ids {
		commands = appendQuery(commands, "KILL_CLIENT "+quoteDouble(id))
	}
	for {
		s, err := c.take(ctx)
		if err != nil {
			return nil, err
		}
		closed, refusal, err := s.pipeline(ctx, commands, len(ids))
		switch {
		case err == nil:
			c.give(s)
			return closed, describe("KILL_CLIENT", refusal)
		case !s.reused || ctx.Err() != nil:
			s.close()
			return closed, fmt.Errorf("%w: KILL_CLIENT: %w", ErrUnreachable, err)
		}
		s.close() // it was dead, and these commands may be repeated
	}
}

// appendQuery appends a simple query of the protocol.
func appendQuery(to []byte, query string) []byte {
	to = binary.BigEndian.AppendUint32(append(to, 'Q'), uint32(4+len(query)+1))
	return append(append(to, query...), 0)
}

// pipeline sends n commands that answer without rows, and says of each whether it was done. Of the refusals it returns the first,
// but for those that a client is not there.
func (s *session) pipeline(ctx context.Context, commands []byte, n int) (done []bool, refusal, err error) {
	s.wire.obey(ctx)
	defer s.wire.unhook()
	if _, err := s.wire.heard.Write(commands); err != nil {
		return nil, nil, ended(ctx, err)
	}
	done = make([]bool, n)
	for answered := 0; answered < n; {
		kind, body, err := s.message()
		switch {
		case err != nil:
			return done, refusal, ended(ctx, err)
		case kind == 'C':
			done[answered] = true
		case kind == 'E' && refusal == nil && !strings.Contains(errorMessage(body), "client not found"):
			refusal = errors.New(errorMessage(body))
		case kind == 'Z': // ready for the next command
			answered++
		}
	}
	return done, refusal, nil
}

// message reads one message: its type and its body.
func (s *session) message() (kind byte, body []byte, err error) {
	head := make([]byte, 5)
	if _, err := io.ReadFull(s.wire.heard, head); err != nil {
		return 0, nil, err
	}
	body = make([]byte, max(binary.BigEndian.Uint32(head[1:]), 4)-4)
	if _, err := io.ReadFull(s.wire.heard, body); err != nil {
		return 0, nil, err
	}
	return head[0], body, nil
}
