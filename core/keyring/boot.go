package keyring

import (
	"strings"
	"time"

	"github.com/pgherd/pgherd/core/id"
)

// Boot is the run of a machine that a host was started in. It tells machines apart that have one name and one identity, as clones
// do; the zero value tells nothing.
type Boot struct {
	ID string
	At time.Time
}

// Host is a host that is called name and was started in the boot.
func (b Boot) Host(of id.RingHostID, name string) Host {
	if b.ID != "" {
		name += " " + b.ID
	}
	return Host{ID: of, Name: name}
}

// Was reports whether a known host is what the one that is called name was before it was started again: in the same boot, or in
// one before it. Who was heard of since the boot and was started in another one runs on another machine.
func (b Boot) Was(known Host, name string) bool {
	if known.Name == name || known.Name == b.Host("", name).Name {
		return true
	}
	return b.ID != "" && strings.HasPrefix(known.Name, name+" ") && known.SeenAt.Before(b.At)
}
