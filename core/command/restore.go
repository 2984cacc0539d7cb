package command

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/rehearsal"
	"github.com/pgherd/pgherd/core/restore"
)

// A restore is three commands of one operation: Load, Switch, Discard. Until Switch has renamed the databases, Close undoes
// everything, and the live database serves as it did; from then on Close is refused with ReasonCompleted, and there is only
// forward. A clone is a restore into a new database, which the same operation has made before, closed and empty, by
// EnsureDatabase; where it has no backup to begin with, it makes a file that passes, by Backup.

// Load makes a copy of a database as a backup file has it, isolated from customers, and compares it with the file's manifest. It
// starts the work, takes it up after a crash, or reports on it, and returns at once. It never touches the live database.
type Load struct {
	Returns[LoadReport] `json:"-"`
	DatabaseID          id.DatabaseID `json:"databaseId"` // that the copy is to become
	Source              Source        `json:"source"`
	// Names are those of the logins and roles of the source. In a copy of the database's own backup, one that is not named keeps
	// its name. In one of another database's, it is no role of the copy: what it owned belongs to the owner, it is granted
	// nothing, and policies are without it.
	Names []Renaming `json:"names"`
	// Compare says whether rows are compared with the manifest, which reads the copy once where that has digests of them. The schema
	// always is. An upload has nothing that either could be compared with.
	Compare bool `json:"compare"`
	// Rehearsal says that the copy never becomes a database: what does not work at this server is told, and Switch refuses it.
	Rehearsal bool `json:"rehearsal,omitempty"`
	// Moving says that a Switch that moves, too, brings along what roles have stored in the database. A rehearsal is one of that.
	Moving bool `json:"moving,omitempty"`
	// Peer is where a Source is that is AtPeer.
	Peer Peer `json:"-"`
}

// Source is a backup file, or an upload where Upload is set: then DatabaseID is that of the copy, and Filename and
// ManifestSHA256 are empty. ReasonNotFound: there is none of that name. ReasonInvalid in the report: an upload is not of
// SizeBytes with SHA256, or what is in it is refused.
//
// An agent keeps an upload that an operation loads until the operation is closed, or its restore has switched, whenever it
// expires.
type Source struct {
	DatabaseID id.DatabaseID   `json:"databaseId"`
	Filename   backup.Filename `json:"filename"`
	// Passing says that the file was made by a Backup that passes.
	Passing bool `json:"passing,omitempty"`
	// AtPeer says that the file passes at the agent that makes it for the same operation, and is read from there, also while it is
	// being written. Where it is made anew meanwhile, so is the copy.
	AtPeer bool `json:"atPeer,omitempty"`
	// ManifestSHA256 is that of the manifest beside the file, in lower-case hex; another manifest is refused. It is empty for a
	// backup of a version that did not record it.
	ManifestSHA256 string `json:"manifestSha256"`

	Upload    id.UploadID `json:"upload,omitempty"`
	SizeBytes int64       `json:"sizeBytes,omitempty"` // of the upload, compressed
	SHA256    string      `json:"sha256,omitempty"`    // of the upload's bytes, in lower-case hex
	// MaxBytes is how large the copy of an upload may become, as a database. ReasonInvalid in the report: it would be larger. 0:
	// no bound but the room.
	MaxBytes int64 `json:"maxBytes,omitempty"`
	// AcceptIncomplete has an upload restored that may be a part of a dump only: see upload.Ending.
	AcceptIncomplete bool `json:"acceptIncomplete,omitempty"`
}

// Renaming is the name that a role of the source has in the copy.
type Renaming struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// About implements Command.
func (c Load) About() About { return ofDatabase("restore.load", c.DatabaseID, 1) }

// Secrets are the peer that the file is read from.
func (c Load) Secrets() map[string]string {
	if !c.Source.AtPeer {
		return nil
	}
	return c.Peer.secrets()
}

func (c *Load) receive(e Envelope) {
	if c.Source.AtPeer {
		c.Peer = receivedPeer(e)
	}
}

// MarshalJSON writes the names in a fixed order.
func (c Load) MarshalJSON() ([]byte, error) {
	type fields Load
	c.Names = slices.SortedFunc(slices.Values(c.Names), func(a, b Renaming) int { return cmp.Compare(a.From, b.From) })
	if c.Names == nil {
		c.Names = []Renaming{}
	}
	return json.Marshal(fields(c))
}

var sumPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Check implements Command. No two roles may become one.
func (c Load) Check() error {
	if err := checkDatabase(c.DatabaseID); err != nil {
		return err
	}
	if c.Source.ManifestSHA256 != "" && !sumPattern.MatchString(c.Source.ManifestSHA256) {
		return Refuse(ReasonInvalid, "source.manifestSha256 must be 64 digits of lower-case hex")
	}
	from, to := map[string]bool{}, map[string]bool{}
	for _, n := range c.Names {
		if !usernamePattern.MatchString(n.From) || !usernamePattern.MatchString(n.To) || from[n.From] || to[n.To] {
			return Refuse(ReasonInvalid, "names: %q cannot become %q", n.From, n.To)
		}
		from[n.From], to[n.To] = true, true
	}
	if c.Rehearsal && (!c.Source.Passing || !c.Compare) {
		return Refuse(ReasonInvalid, "a rehearsal is of a file that passes, and is compared")
	}
	if c.Moving && (!c.Source.AtPeer || c.Source.DatabaseID != c.DatabaseID) {
		return Refuse(ReasonInvalid, "what moves is a file that passes at a peer, of the database itself")
	}
	if c.Source.Upload != "" {
		return c.checkUpload()
	}
	if c.Source.AcceptIncomplete {
		return Refuse(ReasonInvalid, "source.acceptIncomplete is for uploads")
	}
	if c.Source.AtPeer {
		if !c.Source.Passing || c.Source.ManifestSHA256 != "" {
			return Refuse(ReasonInvalid, "what is read from a peer is a file that passes, and has no manifestSha256")
		}
		if err := c.Peer.check(); err != nil {
			return err
		}
	}
	return checkFile(c.Source.DatabaseID, c.Source.Filename)
}

// checkUpload refuses a comparison, too: there is nothing to compare an upload with.
func (c Load) checkUpload() error {
	s := c.Source
	switch {
	case s.DatabaseID != c.DatabaseID || s.Filename != "" || s.Passing || s.AtPeer || s.ManifestSHA256 != "",
		c.Compare || len(c.Names) > 0:
		return Refuse(ReasonInvalid, "an upload is only for its own database, and has no filename, manifest, names or comparison")
	case !sumPattern.MatchString(s.SHA256):
		return Refuse(ReasonInvalid, "source.sha256 must be 64 digits of lower-case hex")
	case s.MaxBytes < 0:
		return Refuse(ReasonInvalid, "source.maxBytes must not be negative")
	}
	return checkUpload(s.DatabaseID, s.Upload, s.SizeBytes)
}

// LoadState says whether a copy is being made or is complete.
type LoadState string

// The states of a copy.
const (
	LoadRunning LoadState = "running"
	LoadReady   LoadState = "ready"  // the copy is whole and compared, and waits for Switch
	LoadFailed  LoadState = "failed" // there will be none
)

// UnmarshalText refuses an unknown state: it does not say what became of the copy.
func (s *LoadState) UnmarshalText(text []byte) (err error) {
	*s, err = oneOf(text, LoadRunning, LoadReady, LoadFailed)
	return err
}

// LoadReport is the progress or the result of a Load.
type LoadReport struct {
	State    LoadState `json:"state"`
	Stage    string    `json:"stage"`    // one of restore.Parts
	Progress int       `json:"progress"` // percent of the file's bytes
	Bytes    Bytes     `json:"bytes,omitzero"`
	// Reason is of LoadFailed. ReasonInvalid: the backup itself is to blame, its files are damaged or it does not come back
	// equal. ReasonIncomplete: an upload may be a part of a dump only. ReasonStorageFull: there is no room for the copy.
	Reason    Reason `json:"reason,omitempty"`
	Message   string `json:"message,omitempty"` // of LoadFailed; fit for the customer
	SizeBytes int64  `json:"sizeBytes,omitempty"`
	// Change is of LoadReady: what the switch would change, as far as that was counted when the copy was ready.
	Change *restore.Change `json:"change,omitempty"`
	// Notes name what the copy does not have although the backup has it, such as a policy none of whose roles exists any more, and
	// of one that moves, what a Switch does not bring along. They are fit for the customer.
	Notes []string `json:"notes,omitempty"`
	// Breaks are of a rehearsal, which is LoadReady also where it has found some: then there may be no copy.
	Breaks rehearsal.Breaks `json:"breaks,omitempty"`
}

// MostNotes bounds the notes of a report, and mostNoteBytes each of them: they are stored with the operation.
const (
	MostNotes     = 100
	mostNoteBytes = 500
)

// UnmarshalJSON takes a reason that this version does not know for ReasonFailed, and bounds the rest.
func (r *LoadReport) UnmarshalJSON(text []byte) error {
	type fields LoadReport
	if err := json.Unmarshal(text, (*fields)(r)); err != nil {
		return err
	}
	r.Progress, r.Bytes = min(max(r.Progress, 0), 100), r.Bytes.bounded()
	if r.State == LoadFailed && !slices.Contains(Reasons, r.Reason) {
		r.Reason = ReasonFailed
	}
	r.Notes = boundedNotes(r.Notes)
	return nil
}

// noMore is the last of so many notes that there is no room for all.
const noMore = "there is more to say than there is room for"

// Noted adds notes to those of an operation. A list that has no room for all of them ends by saying so.
func Noted(list []string, more ...string) []string {
	for _, note := range more {
		if len(list) == MostNotes-1 {
			note = noMore
		}
		if len(list) < MostNotes {
			list = append(list, note)
		}
	}
	return list
}

func boundedNotes(notes []string) []string {
	notes = Noted(nil, notes...)
	for i, note := range notes {
		notes[i] = strings.ToValidUTF8(note[:min(len(note), mostNoteBytes)], "")
	}
	return notes
}

// Switch puts the copy of the operation in the place of the live database, under its name, for its logins as they are now, with
// what belongs to the database as a whole as it is now: gates, limits, settings, allowlist. It closes the gates, ends all
// sessions, renames both in one transaction, opens the gates where Open says so, and makes sure that the name leads to the copy.
// What it replaces is kept, closed, until Discard.
//
// A refusal means that nothing was switched, and the live database serves again as it did. ReasonBusy: it could not be had alone
// in time; try again. Its message says what stays in the database, and is fit for the customer. ReasonNotFound: the operation has
// no copy that is ready. ReasonInvalid: it is to move, and the copy was made by a Load that does not.
type Switch struct {
	Returns[Switched] `json:"-"`
	DatabaseID        id.DatabaseID `json:"databaseId"`
	Open              bool          `json:"open"` // customers may log in afterwards, where Configure does not keep them out
	// Moving says that the switch is a step of a move: it completes no operation, so that Close removes the database, which is
	// opened by Serve and by nothing else.
	Moving bool `json:"moving,omitempty"`
	// Passwords are those in force, of a database that another server has had: they may have been changed there.
	Passwords []Password `json:"passwords,omitempty"`
}

// Switched says what the database is now.
type Switched struct {
	DatabaseOID int64 `json:"databaseOid"`
	SizeBytes   int64 `json:"sizeBytes"`
}

// About implements Command.
func (c Switch) About() About {
	about := ofDatabase("restore.switch", c.DatabaseID, 1)
	if c.Moving {
		about.Step = stepMoveSwitch
	}
	return about
}

// stepMoveSwitch is the step of a switch that a move begins with.
const stepMoveSwitch = "move.switch"

// Steps are those of a switch for itself, and of one that is a step of a move.
func (c Switch) Steps() []string { return []string{string(c.About().Kind), stepMoveSwitch} }

// Check implements Command.
func (c Switch) Check() error {
	if c.Moving && c.Open {
		return Refuse(ReasonInvalid, "a database that moves is opened by move.serve")
	}
	if err := checkInForce(c.Passwords); err != nil {
		return err
	}
	return checkDatabase(c.DatabaseID)
}

// Discard gives up the database that a Switch of the same operation has replaced, which is dropped soon, and removes a file that
// only the operation needed. ReasonNotFound: the operation has switched nothing.
type Discard struct {
	Returns[None] `json:"-"`
	DatabaseID    id.DatabaseID `json:"databaseId"`
}

// About implements Command.
func (c Discard) About() About { return ofDatabase("restore.discard", c.DatabaseID, 1) }

// Check implements Command.
func (c Discard) Check() error { return checkDatabase(c.DatabaseID) }
