package backups

import (
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/pgherd/pgherd/hosts/internal/terminal"
	"github.com/pgherd/pgherd/hosts/svc/cli/app"
)

// meter shows how much of a file has come or gone: a bar on a terminal, and elsewhere a line each minute.
type meter struct {
	a          *app.App
	have, size int64
	last       time.Time // of what has come, and without a bar of a line
	all        *mpb.Progress
	bar        *mpb.Bar
}

const meterLines = time.Minute

func newMeter(a *app.App, name string, size, have int64) *meter {
	m := &meter{a: a, have: have, size: size, last: time.Now()}
	if a.Err.Terminal {
		m.all = mpb.New(mpb.WithOutput(a.Err.Writer), mpb.WithWidth(min(a.Err.Width, 100)))
		m.bar = m.all.New(size, mpb.BarStyle().Lbound("").Rbound("").Filler("━").Tip("━").Padding(" "),
			mpb.PrependDecorators(decor.Name(name+" ")),
			mpb.AppendDecorators(decor.CountersKibiByte("% .1f of % .1f"), decor.EwmaSpeed(decor.SizeB1024(0), "  % .1f", 30)),
			mpb.BarRemoveOnComplete())
		m.bar.SetCurrent(have)
	}
	return m
}

// Write counts bytes.
func (m *meter) Write(b []byte) (int, error) {
	m.have += int64(len(b))
	now := time.Now()
	if m.bar != nil {
		m.bar.EwmaIncrBy(len(b), now.Sub(m.last))
		m.last = now
	} else if now.Sub(m.last) >= meterLines {
		m.a.Note("%s of %s", terminal.Bytes(m.have), terminal.Bytes(m.size))
		m.last = now
	}
	return len(b), nil
}

// end takes the bar away.
func (m *meter) end() {
	if m.bar == nil {
		return
	}
	m.bar.Abort(true)
	m.all.Wait()
}
