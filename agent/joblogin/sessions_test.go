package joblogin

import (
	"context"
	"testing"
	"time"

	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// PostgreSQL's checkpointer stands for a session that does not end, whatever it is told.
func TestEndSessions(t *testing.T) {
	const stays, patience = `backend_type = 'checkpointer'`, 200 * time.Millisecond
	db := clustertest.NewDatabase(t)
	admin, other := db.Open(t), db.Open(t)
	conn, err := other.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	left, err := EndSessions(t.Context(), admin, time.Minute, `datname = $1`, db.Name)
	if left != 0 || err != nil || conn.PingContext(t.Context()) == nil {
		t.Errorf("%d are left, %v", left, err)
	}
	short, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	began := time.Now()
	left, err = EndSessions(short, admin, patience, stays)
	if took := time.Since(began); left != 1 || err != nil || took < patience {
		t.Errorf("%d are left after %s, %v", left, took, err)
	}
	short, cancel = context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err = EndSessions(short, admin, time.Minute, stays); err == nil {
		t.Error("it was canceled, and says nothing")
	}
}
