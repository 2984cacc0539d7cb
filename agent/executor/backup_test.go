package executor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/core/command"
)

type locked struct{ error }

func (locked) ForCustomer() string { return "a table stayed locked" }

// A customer cannot read the agent's log, so what can be said is said; what else went wrong stays in the log.
func TestAnAbandonedBackupSaysWhatItCan(t *testing.T) {
	for want, cause := range map[string]error{
		"a table stayed locked":    fmt.Errorf("dump: %w", locked{errors.New("55P03 at 10.0.0.1")}),
		"the agent's log says why": errors.New("connect to 10.0.0.1: refused"),
	} {
		report := failure(cause)
		if report.State != command.BackupFailed {
			t.Errorf("%+v", report)
		}
		if !strings.HasSuffix(report.Message, want) || strings.Contains(report.Message, "10.0.0.1") {
			t.Errorf("%q, want %q", report.Message, want)
		}
	}
}

func TestAStopWaitsForNoBackupForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		deaf := func(context.Context, *job) (command.BackupReport, error) {
			<-release
			return command.BackupReport{}, errors.New("released")
		}
		x := &Executor{log: zap.NewNop(), jobs: map[string]*job{"1": startJob(Backup{}, deaf), "2": startJob(Backup{}, deaf)}}
		began := time.Now()
		x.stopJobs()
		if took := time.Since(began); took != stopTime {
			t.Errorf("it took %s", took)
		}
		close(release)
	})
}
