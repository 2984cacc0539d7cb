package certificate

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/pgherd/pgherd/core/drill"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// RecoveryFormat is that of a Recovery, as Format is of a Document.
const RecoveryFormat = "pgherd-recovery-certificate/1"

// Recovery is what is signed of a drill that has proven a moment, as JSON.
type Recovery struct {
	Format     string              `json:"format"`
	KeyID      id.CertificateKeyID `json:"keyId"`
	DrillID    id.DrillID          `json:"drillId"`
	DatabaseID id.DatabaseID       `json:"databaseId"`
	// PointInTime is the moment that was had back, and ProvenAt when that was read and compared.
	PointInTime time.Time `json:"pointInTime"`
	ProvenAt    time.Time `json:"provenAt"`
	drill.Facts
}

// ErrNoRecovery is the error for the certificate of a database of which no drill has proven a moment.
func ErrNoRecovery() error {
	return fault.New(fault.CertificateNotFound, "no drill has proven a moment of the database yet; each day one is of a random "+
		"database of the server")
}

// WriteRecovery makes the document of a drill that has proven something: always the same bytes of the same drill and key.
func WriteRecovery(k id.CertificateKeyID, d drill.Drill) ([]byte, error) {
	if d.Outcome != drill.Proven {
		return nil, ErrNoRecovery()
	}
	found, err := d.Found()
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	err = e.Encode(Recovery{
		Format: RecoveryFormat, KeyID: k, DrillID: d.ID, DatabaseID: d.DatabaseID, PointInTime: d.PointInTime.UTC(),
		ProvenAt: d.EndedAt.UTC(), Facts: found.Facts,
	})
	return text.Bytes(), err
}
