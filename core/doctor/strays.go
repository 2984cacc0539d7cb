package doctor

import (
	"regexp"
	"slices"
	"strings"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

// jobLogin is the shape of the names of logins that an agent makes for one operation.
var jobLogin = regexp.MustCompile(`^(dump|ext|verify|restore|qualify)_[0-9a-f]{32}$`)

// Operation is what the metadata say of an operation that an agent has named.
type Operation struct {
	Known bool // there is a record of it
	Open  bool
	Epoch int64
}

// trialSilence is how long, in seconds, nobody may speak of a trial of an extension: an operator has it made, and it has no
// record.
const trialSilence = 30 * 60

// trial begins the names of what such a trial makes, and is in the step of its job.
const trial = "qualify"

// strays collects the findings of what is beside the databases.
type strays struct {
	of     map[id.OperationID]Operation
	told   map[id.OperationID]command.InventoryOperation
	trials map[id.OperationID]bool
	Around
	found []Finding
}

// Around is what a server has of databases.
type Around struct {
	Busy map[string]bool // names of databases that work is under way on
	// Serves says that one is in service: the pooler's files are written with its allowlist.
	Serves bool
	// Behind is as of Files: until an operator has confirmed that the metadata count, no operation is closed that they lack.
	Behind bool
}

// ExamineStrays says what a server has that nothing accounts for.
func ExamineStrays(has command.Strays, of map[id.OperationID]Operation, beside Around) []Finding {
	s := &strays{of: of, told: map[id.OperationID]command.InventoryOperation{}, trials: trialsIn(has), Around: beside}
	for _, o := range has.Operations {
		s.told[o.OperationID] = o
	}
	if has.Cut {
		s.found = append(s.found, Finding{Code: ListCut})
	}
	for _, d := range has.Databases {
		if !s.working(d.OperationID) {
			s.found = append(s.found, Finding{
				Code: StrayDatabase, Subject: d.Name, Has: "owned by " + d.Owner, OperationID: d.OperationID,
			})
		}
	}
	for _, r := range has.Roles {
		if !s.working(r.OperationID) {
			s.found = append(s.found, Finding{
				Code: StrayRole, Subject: r.Name, Has: marking(r.Marked), DatabaseID: r.DatabaseID, OperationID: r.OperationID,
			})
		}
	}
	s.work(has)
	s.pooler(has.Pooler)
	return s.found
}

func marking(marked bool) string {
	if marked {
		return "made by the agent"
	}
	return "not made by the agent"
}

// trialsIn are the operations of trials, as what they have at the agent tells.
func trialsIn(has command.Strays) map[id.OperationID]bool {
	found := map[id.OperationID]bool{}
	for _, j := range has.Jobs {
		found[j.OperationID] = found[j.OperationID] || strings.Contains(j.Step, trial)
	}
	for _, d := range has.Databases {
		found[d.OperationID] = found[d.OperationID] || strings.HasPrefix(d.Name, trial)
	}
	for _, r := range has.Roles {
		found[r.OperationID] = found[r.OperationID] || strings.HasPrefix(r.Name, trial)
	}
	return found
}

// working reports whether an operation is open, or is a trial that was spoken of lately.
func (s *strays) working(op id.OperationID) bool {
	if o := s.of[op]; o.Known {
		return o.Open
	}
	told, known := s.told[op]
	return s.trials[op] && known && !told.Closed && told.SilentS < trialSilence
}

// work is about what operations have at the agent. One is closed whose record says that it is over, and one that has no record:
// it was begun after the moment that the metadata went back to. An operation is stored before an agent hears of it.
func (s *strays) work(has command.Strays) {
	left := func(c Code, subject, has string, of id.OperationID, db id.DatabaseID, closing bool) {
		if s.working(of) {
			return
		}
		o := s.of[of]
		s.found = append(s.found, Finding{
			Code: c, Subject: subject, Has: has, OperationID: of, DatabaseID: db, NoRepair: !closing || !o.Known && s.Behind,
			Epoch: max(o.Epoch, s.told[of].Epoch),
		})
	}
	for _, c := range has.Copies {
		word := "the agent is to drop it"
		if c.Wanted {
			word = "the agent keeps it"
		}
		left(CopyLeft, c.Name, word, c.OperationID, c.DatabaseID, c.Wanted)
	}
	for _, j := range has.Jobs {
		left(JobLeft, j.Step+" of "+string(j.OperationID), "", j.OperationID, j.DatabaseID, true)
	}
}

func (s *strays) pooler(differences []command.PoolerDifference) {
	codes := map[string]Code{
		command.PoolerDown: PoolerDown, command.PoolerFiles: PoolerFiles, command.PoolerLive: PoolerLive,
	}
	for _, d := range differences {
		if d.Database == "" || !s.Busy[d.Database] {
			s.found = append(s.found, Finding{
				Code: codes[d.Where], Subject: d.What, Want: d.Want, Has: d.Has, NoRepair: !s.Serves,
			})
		}
	}
}

// Named are the operations that an agent has named.
func Named(has command.Strays) (all []id.OperationID) {
	for _, d := range has.Databases {
		all = append(all, d.OperationID)
	}
	for _, r := range has.Roles {
		all = append(all, r.OperationID)
	}
	for _, c := range has.Copies {
		all = append(all, c.OperationID)
	}
	for _, j := range has.Jobs {
		all = append(all, j.OperationID)
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(op id.OperationID) bool {
		_, err := id.Parse[id.OperationID](string(op))
		return err != nil
	})
}
