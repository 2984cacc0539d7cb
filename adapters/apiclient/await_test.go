package apiclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/operation"
)

func TestAwait(t *testing.T) {
	asked := 0
	client := hear(t, Config{}, func(w http.ResponseWriter, _ *http.Request) {
		asked++
		status := operation.Running
		if asked > 2 {
			status = operation.Failed
		}
		_, _ = fmt.Fprintf(w, `{"status":%q}`, status)
	})
	o, err := client.Operations.Await(t.Context(), "o", time.Millisecond)
	if err != nil || o.Status != operation.Failed || asked != 3 {
		t.Errorf("%s after %d looks: %v", o.Status, asked, err)
	}
	asked = -1000
	for _, pause := range []time.Duration{time.Millisecond, time.Hour} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		o, err = client.Operations.Await(ctx, "o", pause)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %s: %v", pause, o.Status, err)
		}
	}
	canceled, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err = client.Operations.Await(canceled, "o", time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}
