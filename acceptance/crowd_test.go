package acceptance

import (
	"errors"
	"time"

	"github.com/pgherd/pgherd/acceptance/spec"
	"github.com/pgherd/pgherd/core/id"
)

var errNotAlone = errors.New("this would change something for scenarios that play at the same time: one that does it plays alone")

// crowded is a world in which others play at the same time: nothing is done there to what all of them use.
func crowded(w spec.World) spec.World {
	w.Operator, w.Batch, w.Agent = considerate{w.Operator}, hands{}, hands{}
	if w.Outages != nil {
		w.Outages = hands{}
	}
	if w.Archive != nil {
		w.Archive = hands{}
	}
	return w
}

// hands are kept off.
type hands struct{}

func (hands) Stop() error                     { return errNotAlone }
func (hands) Start() error                    { return errNotAlone }
func (hands) SetFull(bool) error              { return errNotAlone }
func (hands) SetAway(bool) error              { return errNotAlone }
func (hands) Metadata(bool) error             { return errNotAlone }
func (hands) Server(bool) error               { return errNotAlone }
func (hands) Pooler(bool) error               { return errNotAlone }
func (hands) Keep(bool) error                 { return errNotAlone }
func (hands) Lose(time.Time, time.Time) error { return errNotAlone }

type considerate struct{ spec.Operator }

func (considerate) SetMaintenance(bool) error                      { return errNotAlone }
func (considerate) SetFeature(string, bool) error                  { return errNotAlone }
func (considerate) RotateSecrets() error                           { return errNotAlone }
func (considerate) DropOldSecretKeys() error                       { return errNotAlone }
func (considerate) RotateCertificateKey(id.CertificateKeyID) error { return errNotAlone }
func (considerate) AddDeadServer() (func() error, error)           { return nil, errNotAlone }
func (considerate) EnableServer(id.ServerID, bool) error           { return errNotAlone }
func (considerate) Drain(id.ServerID) error                        { return errNotAlone }
