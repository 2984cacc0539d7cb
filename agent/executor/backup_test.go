package executor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/agent/protocol"
)

// discarding counts what is thrown away.
type discarding struct {
	Backups
	discarded int
}

func (d *discarding) Discard(context.Context, Backup) error {
	d.discarded++
	return nil
}

type locked struct{ error }

func (locked) ForCustomer() string { return "a table stayed locked" }

// A customer cannot read the agent's log, so what can be said is said; what else went wrong stays in the log.
func TestAnAbandonedBackupSaysWhatItCan(t *testing.T) {
	for want, cause := range map[string]error{
		"a table stayed locked":    fmt.Errorf("dump: %w", locked{errors.New("55P03 at 10.0.0.1")}),
		"the agent's log says why": errors.New("connect to 10.0.0.1: refused"),
	} {
		kept := &discarding{}
		report, err := (&Executor{backups: kept}).giveUp(t.Context(), Backup{}, cause)
		if err != nil || report.State != protocol.BackupFailed || kept.discarded != 1 {
			t.Errorf("%+v, %v, %d discarded", report, err, kept.discarded)
		}
		if !strings.HasSuffix(report.Message, want) || strings.Contains(report.Message, "10.0.0.1") {
			t.Errorf("%q, want %q", report.Message, want)
		}
	}
}
