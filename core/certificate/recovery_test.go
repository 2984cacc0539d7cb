package certificate

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/drill"
	"github.com/pgherd/pgherd/core/fault"
)

func TestDocumentOfADrill(t *testing.T) {
	at := time.Date(2026, 11, 24, 12, 0, 0, 0, time.FixedZone("", 3600))
	facts := drill.Facts{
		Database: "shop<1>", ServerVersion: "16.14", ReplayedTo: at.UTC(), Checksums: true, Canaries: 7,
		Canary: &drill.Canary{At: at.UTC(), Digest: "d"},
		Backup: &drill.Reference{Filename: "f", Unchanged: true}, Contents: drill.Contents{Tables: 2, Rows: 1 << 40, Digest: "e"},
		Took: drill.Took{FetchMs: 1},
	}
	found := drill.Found{Outcome: drill.Proven, Facts: facts}
	d := drill.Drill{ID: "i", DatabaseID: "d", PointInTime: at}.Ended(at.Add(time.Hour), found)
	text, err := WriteRecovery("k", d)
	if err != nil {
		t.Fatal(err)
	}
	const begin = `{"format":"pgherd-recovery-certificate/1","keyId":"k",`
	if !bytes.HasPrefix(text, []byte(begin)) || !bytes.Contains(text, []byte("shop<1>")) {
		t.Errorf("%s", text)
	}
	var read Recovery
	if err := json.Unmarshal(text, &read); err != nil || !reflect.DeepEqual(read, Recovery{
		Format: RecoveryFormat, KeyID: "k", DrillID: "i", DatabaseID: "d", PointInTime: at.UTC(),
		ProvenAt: at.Add(time.Hour).UTC(), Facts: facts,
	}) {
		t.Errorf("%+v, %v", read, err)
	}
	if again, _ := WriteRecovery("k", d); !bytes.Equal(again, text) {
		t.Errorf("then it was %s", again)
	}
	d.Outcome = drill.Failed
	if _, err := WriteRecovery("k", d); !fault.Has(err, fault.CertificateNotFound) {
		t.Errorf("of one that has failed: %v", err)
	}
}
