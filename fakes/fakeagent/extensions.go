package fakeagent

import (
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/core/id"
)

// serverVersion is what the fake's PostgreSQL says of itself.
const serverVersion = "16.15"

// Offer is what a server has of an extension; an empty default version says that it is not available.
type Offer struct {
	DefaultVersion string
	Trusted        bool
}

// offers are those of PostgreSQL 16.
func offers() map[extension.Name]Offer {
	return map[extension.Name]Offer{
		extension.Citext: {"1.6", true}, extension.PgTrgm: {"1.6", true}, extension.PgCrypto: {"1.3", true},
	}
}

// installed is an extension as it stands in a database.
type installed struct{ version, schema string }

// extensionJob is work on an extension that is under way, or over. The call after the one that begins it does it.
type extensionJob struct {
	change command.ExtensionReport
	proof  command.ExtensionProof
}

// SetOffer changes what the server has of an extension.
func (s *Server) SetOffer(name extension.Name, o Offer) {
	s.set(func(*faults) { s.offers[name] = o })
}

// QueueExtensions has changes of extensions wait for their turn.
func (s *Server) QueueExtensions(on bool) { s.set(func(f *faults) { f.queueExtensions = on }) }

// HoldExtensions keeps work on extensions from ending, as where nobody can tell what has become of it.
func (s *Server) HoldExtensions(on bool) { s.set(func(f *faults) { f.holdExtensions = on }) }

// FailExtensions makes changes of extensions fail with this message and nothing changed, and proofs find them not qualified;
// empty lets them succeed again.
func (s *Server) FailExtensions(message string) {
	s.set(func(f *faults) { f.failExtensions = message })
}

// PutExtension has the owner install an extension, or remove it where the version is empty. It reports whether there is such a
// database.
func (s *Server) PutExtension(database string, name extension.Name, version, schema string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.named(database)
	switch {
	case d == nil:
		return false
	case version == "":
		delete(d.extensions, name)
	default:
		d.extensions[name] = installed{version, schema}
	}
	s.remember(d)
	return true
}

func (s *Server) extensionsOf(d *databaseState) command.ExtensionList {
	list := command.ExtensionList{ServerVersion: serverVersion}
	for _, name := range extension.Names {
		o, has := s.offers[name], d.extensions[name]
		list.Entries = append(list.Entries, command.ExtensionEntry{
			Name: name, Available: o.DefaultVersion != "", Trusted: o.Trusted, DefaultVersion: o.DefaultVersion,
			InstalledVersion: has.version, Schema: has.schema,
		})
	}
	return list
}

// begun returns the operation's work on an extension, and whether it may be done now.
func (s *Server) begun(op id.OperationID) (j *extensionJob, act bool) {
	j, found := s.extensionJobs[op]
	if !found {
		const stage = "changing"
		j = &extensionJob{
			change: command.ExtensionReport{State: command.ExtensionRunning, Stage: stage},
			proof:  command.ExtensionProof{State: command.ExtensionRunning, Stage: stage},
		}
		s.extensionJobs[op] = j
	}
	return j, found && !s.faults.holdExtensions
}

func (s *Server) changeExtension(op id.OperationID, d *databaseState, c command.ChangeExtension) command.ExtensionReport {
	if s.faults.queueExtensions {
		return command.ExtensionReport{State: command.ExtensionRunning, Stage: "queued"}
	}
	j, act := s.begun(op)
	if act && j.change.State == command.ExtensionRunning {
		j.change = s.changed(d, c)
	}
	return j.change
}

func (s *Server) changed(d *databaseState, c command.ChangeExtension) command.ExtensionReport {
	o, has := s.offers[c.Extension], d.extensions[c.Extension]
	why := s.faults.failExtensions
	switch {
	case why != "":
	case o.DefaultVersion != c.Version || !o.Trusted:
		why = "the server does not offer this version of the extension to owners"
	case c.Change == extension.Install && has.version != "":
		why = "the extension is installed already"
	case c.Change == extension.Upgrade && (has.version == "" || has.schema != extension.Schema || has.version == c.Version):
		why = "the extension is not installed in the schema public with another version"
	}
	if why != "" {
		return command.ExtensionReport{State: command.ExtensionFailed, Reason: command.ReasonFailed, Message: why}
	}
	d.extensions[c.Extension] = installed{c.Version, extension.Schema}
	s.remember(d)
	return command.ExtensionReport{
		State: command.ExtensionDone, Stage: "done", Changed: true, InstalledVersion: c.Version, Schema: extension.Schema,
	}
}

func (s *Server) qualifyExtension(op id.OperationID, c command.QualifyExtension) command.ExtensionProof {
	j, act := s.begun(op)
	if act && j.proof.State == command.ExtensionRunning {
		j.proof = command.ExtensionProof{
			State: command.ExtensionDone, Stage: "done", Message: s.faults.failExtensions, Version: c.Version,
			ServerVersion: serverVersion,
		}
		if o := s.offers[c.Extension]; o.DefaultVersion != c.Version || !o.Trusted {
			j.proof.Message = "the server does not offer this version of the extension to owners"
		}
		j.proof.Qualified = j.proof.Message == ""
	}
	return j.proof
}
