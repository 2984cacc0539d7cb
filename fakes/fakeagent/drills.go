package fakeagent

import (
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/drill"
)

// drill does a drill at once, unless drills are held.
func (s *Server) drill(q command.Drill) (r command.DrillReport, err error) {
	switch err := q.Check(); {
	case err != nil:
		return r, err
	case s.archive.off:
		return r, command.Refuse(command.ReasonInvalid, "this server keeps no archive")
	case s.faults.holdDrills && s.drilling != "" && s.drilling != q.ID:
		return r, command.Refuse(command.ReasonCrowded, "the drill %s goes on", s.drilling)
	}
	d := s.databases[q.DatabaseID]
	if d == nil {
		return r, errNoDatabase(q.DatabaseID)
	}
	if s.drilling = ""; s.faults.holdDrills {
		s.drilling = q.ID
		return command.DrillReport{Stage: drill.Replaying}, nil
	}
	then, why := s.then(q.DatabaseID, q.At)
	if then == nil {
		r.Found = drill.Found{Outcome: drill.NotRun, Why: why}
		return r, nil
	}
	c := contentsOf(then.contents)
	f := drill.Facts{
		Database: d.name, ServerVersion: serverVersion, ReplayedTo: q.At.UTC(), Checksums: true,
		Contents: drill.Contents{Tables: len(c.Rows), Bytes: emptyDatabase, Digest: drill.DigestOf(c)},
		Took:     drill.Took{FetchMs: 2000, ReplayMs: 1000, CompareMs: 500},
	}
	for _, rows := range c.Rows {
		f.Contents.Rows += rows
	}
	if f.Backup, err = s.compared(q, c); err != nil {
		return r, err
	}
	r.Found = drill.Found{Outcome: drill.Proven, Facts: f}
	if why := s.faults.drillFails; why != "" {
		r.Outcome, r.Why = drill.Failed, why
	}
	return r, nil
}

// compared is how what was had back compares with the backup; nil where there is none.
func (s *Server) compared(q command.Drill, c backup.Contents) (*drill.Reference, error) {
	f := s.files[fileKey{database: q.DatabaseID, filename: q.Filename}]
	if f == nil {
		return nil, nil
	}
	m, err := backup.ParseManifest(f.manifest)
	if err != nil {
		return nil, err
	}
	unlike, err := backup.Compare(m.Manifest, c)
	ref := &drill.Reference{Filename: q.Filename, ManifestSHA256: m.SHA256, CreatedAt: m.CreatedAt, Differences: len(unlike)}
	for _, d := range unlike[:min(len(unlike), drill.MostDiffer)] {
		ref.Differ = append(ref.Differ, d.String())
	}
	return ref, err
}
