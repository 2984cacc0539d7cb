package peer

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/agent/server"
	"github.com/pgherd/pgherd/core/command"
)

// Whatever lengths a peer says of a file, one after the other, it stays one file that is no longer than it may be, and the end of
// which does not lie before what has come; and whatever it refuses with, nothing of its text is shown.
func FuzzAnswersOfPeers(f *testing.F) {
	f.Add(int64(0), int64(10), int64(4<<20), int64(10), int64(6), true, 200, "")
	f.Add(int64(100), int64(-1), int64(1<<63-1), int64(1<<63-1), int64(-1), true, 404, `{"reason":"not_found","message":"secret"}`)
	f.Add(int64(5), int64(5), int64(5), int64(0), int64(1), false, 409, `{"reason":"altered","message":"secret"}`)
	f.Add(int64(0), int64(0), int64(0), int64(1<<62), int64(1<<62), false, 302, "secret <html>")
	f.Add(int64(0), int64(0), int64(0), int64(0), int64(0), false, 401, "secret")
	f.Fuzz(func(t *testing.T, at, size, most, first, second int64, grows bool, status int, text string) {
		if most < 0 || at < 0 || at > most || size != server.Growing && (size < at || size > most) || !grows && size == server.Growing {
			t.Skip("no file is read like this")
		}
		of := &fetched{at: at, size: size, most: most, grows: grows}
		for _, length := range []int64{first, second} {
			before := of.size
			if of.fits(&http.Response{ContentLength: max(-1, length)}) != nil {
				continue
			}
			if of.size != server.Growing && (of.size < of.at || of.size > of.most) || before != server.Growing && before != of.size {
				t.Fatalf("a file of %d bytes becomes one of %d, at %d of at most %d", before, of.size, of.at, of.most)
			}
		}
		err := refused(&http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(text))})
		var away *AwayError
		var unlike *UnlikeError
		if errors.As(err, &away) == errors.As(err, &unlike) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%d, %q: %v", status, text, err)
		}
		if no := new(command.Refusal); errors.As(err, &no) && no.Reason != command.ReasonFailed {
			t.Errorf("%d, %q is the refusal %v", status, text, no)
		}
	})
}
