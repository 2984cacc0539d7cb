package archive

import (
	"strings"
	"testing"

	"github.com/pgherd/pgherd/core/command"
)

// A page that is not there fails a replay where it is of a database that is to be whole, or of what all share.
func TestWhatAServerBesideMayLack(t *testing.T) {
	const ready = "LOG:  database system is ready to accept connections\n"
	for line, lacks := range map[string]bool{
		"WARNING:  page 0 of relation base/16400/2619 is uninitialized\n":                           false,
		"WARNING:  page 7 of relation base/16384/16401_vm does not exist\n":                         true,
		"WARNING:  page 7 of relation global/1262 is uninitialized\n":                               true,
		"WARNING:  page 0 of relation pg_tblspc/16390/PG_16_202307071/16384/16402 does not exist\n": true,
		"WARNING:  page 0 of relation pg_tblspc/16384/PG_16_202307071/16400/16402 does not exist\n": false,
		"WARNING:  WAL contains references to invalid pages\n":                                      false,
	} {
		took := make(chan struct{})
		h := newHeard(0, []string{"global", "16384"}, func(string, int, command.Bytes) {})
		h.read(strings.NewReader(line+ready), took)
		<-took
		if (h.missing != "") != lacks {
			t.Errorf("%s: it finds %q", line, h.missing)
		}
		if lacks && !strings.Contains(h.why().Error(), strings.TrimSpace(line)) {
			t.Errorf("%s: the error is %v", line, h.why())
		}
	}
}

// Code of the customer's says in its session what it likes, and is not taken for the server.
func TestWhatSessionsSayInAServerBeside(t *testing.T) {
	const ready = "database system is ready to accept connections\n"
	lines := "LOG:  " + ready + ofSession + "WARNING:  " + ready + ofSession + "WARNING:  FATAL:  canary\n" +
		ofSession + "WARNING:  two\n\tFATAL:  canary\n\t" + ready + ofSession + "DETAIL:  canary\n"
	h := newHeard(0, nil, func(string, int, command.Bytes) {})
	h.read(strings.NewReader(lines), make(chan struct{}))
	if h.last != "" || strings.Contains(h.why().Error(), "canary") {
		t.Errorf("it has heard %q: %v", h.last, h.why())
	}
}
