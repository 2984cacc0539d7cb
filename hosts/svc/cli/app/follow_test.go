package app

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/operation"
)

func TestProgressInBytes(t *testing.T) {
	for want, known := range map[string]*wire.Bytes{
		"40 %":                  nil,
		"40 % (0 B of 4 GiB)":   {Total: 4 << 30},
		"40 % (1 GiB of 4 GiB)": {Done: 1 << 30, Total: 4 << 30},
	} {
		var out bytes.Buffer
		a := &App{Ctx: t.Context(), Out: Screen{Writer: io.Discard}, Err: Screen{Writer: io.Discard}}
		a.Out.Writer = &out
		check.NoError(t, a.ShowOperation(wire.Operation{Status: operation.Running, Progress: 40, ProgressBytes: known}))
		if !strings.Contains(out.String(), "Progress:  "+want+"\n") {
			t.Errorf("want %s:\n%s", want, out.String())
		}
	}
}
