package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
)

// Question is a route for one type of question. Its answer is written by handle, which returns a refusal's cause instead where
// it has written nothing.
type Question struct {
	pattern string
	handle  func(w http.ResponseWriter, r *http.Request) error
}

// Answering has the questions of a type answered by answer.
func Answering[Q command.Asking[R], R any](answer func(ctx context.Context, q Q) (R, error)) Question {
	return questions(func(w http.ResponseWriter, r *http.Request, q Q) error {
		if r.Method == http.MethodGet {
			onlyAsks(r.Context())
		}
		found, err := answer(r.Context(), q)
		if err != nil {
			return err
		}
		if _, none := any(found).(command.None); none {
			w.WriteHeader(http.StatusNoContent)
			return nil
		}
		write(w, http.StatusOK, found)
		return nil
	})
}

// Opening has the files that a type of question is for, which are of one type, opened by open.
func Opening[Q command.Question](contentType string, open func(ctx context.Context, q Q) (io.ReadCloser, int64, error)) Question {
	return questions(func(w http.ResponseWriter, r *http.Request, q Q) error {
		file, size, err := open(r.Context(), q)
		if err != nil {
			return err
		}
		defer file.Close()
		w.Header().Set("Content-Type", contentType)
		Stream(w, file, size)
		return nil
	})
}

// Receiving has the bytes that come with a type of question taken by receive, as they come: each MiB within a time. They must say
// how many they are.
func Receiving[Q command.Asking[R], R any](
	receive func(ctx context.Context, q Q, size int64, body io.ReadCloser) (R, error), within time.Duration,
) Question {
	return questions(func(w http.ResponseWriter, r *http.Request, q Q) error {
		if r.ContentLength < 0 {
			return command.Refuse(command.ReasonInvalid, "the request must say how many bytes come")
		}
		body := &arriving{body: r.Body, control: http.NewResponseController(w), within: within}
		got, err := receive(r.Context(), q, r.ContentLength, body)
		body.settle()
		if err != nil {
			return err
		}
		write(w, http.StatusOK, got)
		return nil
	})
}

func questions[Q command.Question](handle func(w http.ResponseWriter, r *http.Request, q Q) error) Question {
	var zero Q
	return Question{pattern: zero.Route().Pattern(), handle: func(w http.ResponseWriter, r *http.Request) error {
		var q Q
		if protocol.HasBody(q) {
			if err := readBody(w, r, &q); err != nil {
				return err
			}
		}
		protocol.ReadPath(&q, r.PathValue)
		if err := q.Check(); err != nil {
			return err
		}
		return handle(w, r, q)
	}}
}

// readBody refuses a body that is too long, has unknown or duplicate fields, or is more than one value. Its errors repeat
// nothing of the body, which may contain secrets.
func readBody(w http.ResponseWriter, r *http.Request, to any) error {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxCommand))
	if err != nil {
		return command.Refuse(command.ReasonInvalid, "the body is too long, or broke off")
	}
	if err := json.Unmarshal(text, to, json.RejectUnknownMembers(true)); err != nil {
		return command.Refuse(command.ReasonInvalid, "the body is not the JSON of the protocol")
	}
	return nil
}

// Growing is the size of a file that is still being written.
const Growing = -1

// Stream writes a file with one small buffer, for as long as the client takes chunk after chunk in time. A truncated file breaks
// the connection, so that nobody takes it for complete; so does one that does not grow for as long.
func Stream(w http.ResponseWriter, file io.Reader, size int64) {
	control := http.NewResponseController(w)
	if size == Growing {
		_ = control.Flush() // the client learns at once that it comes
	} else {
		w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	}
	for sent := int64(0); sent != size; {
		chunk := int64(downloadChunk)
		if size != Growing {
			chunk = min(chunk, size-sent)
		}
		_ = control.SetWriteDeadline(time.Now().Add(chunkTime)) // supported by every connection of ours
		n, err := io.CopyN(w, file, chunk)
		if size == Growing && errors.Is(err, io.EOF) {
			return
		}
		if sent += n; err != nil {
			panic(http.ErrAbortHandler)
		}
	}
}
