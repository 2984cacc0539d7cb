package command

import (
	"regexp"
	"strings"
	"time"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/id"
)

// A server that is gone for good has left its archive and its backups where it kept them. The agent of another server, which
// reaches the same store, makes its databases anew from that: Inherit says where it is, a Backup with Lost has a database back as
// it was last, and AdoptBackup takes a backup over.

// Inherit has an agent remember what a server that is gone has left, and look what there is. Said again, it replaces what was
// said before. ReasonInvalid: it is this agent's own. ReasonUnavailable: nobody can tell now what there is of an archive, as
// where the store does not answer, or this agent's archive has no key yet.
type Inherit struct {
	Returns[Heritage] `json:"-"`
	// Installation is that of the server that is gone.
	Installation string `json:"installation"`
	// Storage is what the keys of its objects begin with in this agent's bucket or, where this agent keeps backups in a folder, the
	// folder of the server that is gone, as this machine sees it.
	Storage string `json:"storage"`
	// Key is the passphrase of its archive.
	Key string `json:"key"`
}

// Heritage is what there is.
type Heritage struct {
	// Until is how far the archive reaches; nil where there is none that can be used, and Why says in one line why not.
	Until *time.Time `json:"until,omitempty"`
	Why   string     `json:"why,omitempty"`
	// WhyNoBackups says in one line why no backups can be taken over; empty: they can.
	WhyNoBackups string `json:"whyNoBackups,omitempty"`
}

// Route implements Question.
func (Inherit) Route() Route { return Route{Method: "POST", Path: "/v1/heritage"} }

// installationPattern is what agents call themselves. It is a part of the name of a folder, too.
var installationPattern = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`)

// maxStorage is how long Storage may be.
const maxStorage = 512

// Check implements Question.
func (q Inherit) Check() error {
	if err := checkInstallation(q.Installation); err != nil {
		return err
	}
	if len(q.Storage) > maxStorage || strings.ContainsFunc(q.Storage, func(r rune) bool { return r < ' ' }) {
		return Refuse(ReasonInvalid, "storage is longer than %d bytes, or has control characters", maxStorage)
	}
	return SetArchiveKey{Key: q.Key}.Check()
}

func checkInstallation(text string) error {
	if !installationPattern.MatchString(text) {
		return Refuse(ReasonInvalid, "installation is none")
	}
	return nil
}

// AdoptBackup has an agent take over a backup of a server that is gone, or of a peer, whose database it has. Asked again under
// the same turn it tells how far that is, and then how it has ended: ReadingWhole, with what is kept as the agent's own. Its
// data are copied as they are, and not read: who fills a database from them, or a RereadBackup, finds what has rotted. One
// backup is taken over or read at a time: ReasonCrowded while it is another one. ReasonNotFound: the agent does not have the
// database. ReasonNotRecoverable: Inherit has not been said of that server. A backup that a peer does not give is ReadingUnsure;
// one that it does not have is ReadingDamaged.
type AdoptBackup struct {
	Returns[BackupReading] `json:"-"`
	DatabaseID             id.DatabaseID   `json:"-" path:"id"`
	Filename               backup.Filename `json:"-" path:"filename"`
	// SizeBytes and ManifestSHA256 are those of the backup as it was recorded.
	SizeBytes      int64  `json:"sizeBytes"`
	ManifestSHA256 string `json:"manifestSha256"`
	// Lost is the installation of the server that is gone; empty: the backup is a peer's.
	Lost string `json:"lost,omitempty"`
	// Peer has admitted this agent for the operation.
	Peer      Peer           `json:"peer,omitzero"`
	Operation id.OperationID `json:"operationId,omitempty"`
	// Turn tells the taking over from earlier ones of the same backup.
	Turn int64 `json:"turn"`
}

// Route implements Question.
func (AdoptBackup) Route() Route {
	return Route{Method: "POST", Path: "/v1/databases/{id}/backups/{filename}/adopt"}
}

// Check implements Question.
func (q AdoptBackup) Check() error {
	switch err := checkInstallation(q.Lost); {
	case q.Lost != "" && q.Peer != (Peer{}):
		return Refuse(ReasonInvalid, "a backup is of a server that is gone, or of a peer")
	case q.Peer != (Peer{}):
		if err := q.Peer.checkFor(q.Operation); err != nil {
			return err
		}
	case err != nil:
		return err
	}
	return RereadBackup{
		DatabaseID: q.DatabaseID, Filename: q.Filename, SizeBytes: q.SizeBytes, ManifestSHA256: q.ManifestSHA256,
	}.Check()
}
