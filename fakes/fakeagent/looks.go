package fakeagent

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/recovery"
)

// lookJob is work in a server beside that is under way or has ended.
type lookJob struct {
	look       command.Look
	rescue     command.RescueReport
	comparison *recovery.Comparison
	search     []byte // sealed
}

// look goes one step on with work on what a database held at moments, of which the last is stage. It reports whether the work is
// to be done now.
func (s *Server) look(op id.OperationID, db id.DatabaseID, stage string, moments ...time.Time) (j *lookJob, now bool, err error) {
	if err := s.serves(db); err != nil {
		return nil, false, err
	}
	j = s.looks[op]
	switch {
	case j == nil && s.archive.off:
		return nil, false, command.Refuse(command.ReasonNotRecoverable, "the server keeps no archive")
	case j == nil:
		j = &lookJob{look: command.Look{State: command.LookRunning, Stage: recovery.Fetching}}
		s.looks[op] = j
	case j.look.State != command.LookRunning:
	case j.look.Stage == recovery.Fetching:
		j.look.Stage, j.look.Progress = recovery.Replaying, 20
	case j.look.Stage == recovery.Replaying:
		j.look.Stage, j.look.Progress = stage, 60
		for _, at := range moments {
			if was, why := s.then(db, at); was == nil {
				j.fail(command.ReasonNotRecoverable, "", why)
			}
		}
	default:
		j.look = command.Look{State: command.LookDone, Stage: "done", Progress: 100}
		return j, true, nil
	}
	return j, false, nil
}

func (j *lookJob) fail(why command.Reason, field, message string) {
	j.look = command.Look{
		State: command.LookFailed, Stage: "done", Progress: 100, Reason: why, Field: field, Message: message,
	}
}

// rescue puts the tables into the schema, once they are all found.
func (s *Server) rescue(op id.OperationID, c command.Rescue) (command.RescueReport, error) {
	j, now, err := s.look(op, c.DatabaseID, recovery.Copying, c.At)
	if err != nil {
		return command.RescueReport{}, err
	}
	if now {
		s.copyOver(j, c)
	}
	j.rescue.Look = j.look
	return j.rescue, nil
}

func (s *Server) copyOver(j *lookJob, c command.Rescue) {
	d, schema := s.databases[c.DatabaseID], recovery.RescueSchema(c.At)
	was, _ := s.then(c.DatabaseID, c.At)
	made, copied := "CREATE SCHEMA "+schema+";\n", []recovery.Rescued{}
	if strings.Contains(d.contents, made) {
		j.fail(command.ReasonNameTaken, "", "the database has a schema "+schema+" already")
		return
	}
	for i, t := range c.Tables {
		rows, there := rowsIn(was.contents, t)
		if !there {
			j.fail(command.ReasonInvalid, recovery.TableField(i), t.String()+" was not there then")
			return
		}
		made += "CREATE TABLE " + schema + "." + t.Rescued() + " ();\n"
		made += strings.Repeat("INSERT INTO "+schema+"."+t.Rescued()+" VALUES ();\n", int(rows))
		copied = append(copied, recovery.Rescued{Of: t.String(), Name: t.Rescued(), Rows: rows})
	}
	if size := d.bytes() + int64(len(made)); size > c.MaxBytes {
		j.fail(command.ReasonTooLarge, "", fmt.Sprintf("the database would have %d bytes", size))
		return
	}
	d.contents += made
	s.remember(d)
	j.rescue.Tables = copied
}

// rowsIn counts the rows of a table in SQL text.
func rowsIn(contents string, t recovery.Table) (rows int64, there bool) {
	rows = int64(strings.Count("\n"+contents, "\nINSERT INTO "+t.String()+" "))
	return rows, rows > 0 || strings.Contains(contents, "CREATE TABLE "+t.String()+" (")
}

// compare compares tables by the rows that they have.
func (s *Server) compare(op id.OperationID, c command.CompareMoments) (command.ComparisonReport, error) {
	j, now, err := s.look(op, c.DatabaseID, recovery.Counting, c.From, c.To)
	if err != nil {
		return command.ComparisonReport{}, err
	}
	if now {
		before, _ := s.then(c.DatabaseID, c.From)
		after, _ := s.then(c.DatabaseID, c.To)
		compared := recovery.Compare(c.From, c.To, tablesIn(before.contents), tablesIn(after.contents))
		j.comparison = &compared
	}
	return command.ComparisonReport{Look: j.look, Comparison: j.comparison}, nil
}

var statements = regexp.MustCompile(`(?m)^(CREATE TABLE|INSERT INTO) (\S+) `)

// tablesIn are the tables of SQL text, without columns.
func tablesIn(contents string) (list []recovery.Held) {
	for _, found := range statements.FindAllStringSubmatch(contents, -1) {
		t, err := recovery.ParseTable(found[2])
		if err != nil || slices.ContainsFunc(list, func(h recovery.Held) bool { return h.Table == t }) {
			continue
		}
		rows, _ := rowsIn(contents, t)
		list = append(list, recovery.Held{Table: t, Count: recovery.Count{Rows: rows}})
	}
	return list
}

var counting = regexp.MustCompile(`^SELECT count\(\*\) FROM (\S+)$`)

// find looks for a moment by a query that counts the rows of a table, which is all that it understands.
func (s *Server) find(op id.OperationID, c command.FindMoment) (command.SearchReport, error) {
	j, now, err := s.look(op, c.DatabaseID, recovery.Asking, c.From, c.To)
	if err != nil {
		return command.SearchReport{}, err
	}
	if now {
		s.seek(op, j, c)
	}
	return command.SearchReport{Look: j.look, Sealed: j.search}, nil
}

func (s *Server) seek(op id.OperationID, j *lookJob, c command.FindMoment) {
	until, _ := recovery.ParseUntil(c.Question.Until) // the command was checked
	of := counting.FindStringSubmatch(c.Question.Query)
	if of == nil {
		j.fail(command.ReasonInvalid, "query", "fails (SQLSTATE 42601)")
		return
	}
	t, _ := recovery.ParseTable(of[1])
	search, looks := recovery.Search{From: c.From, To: c.To, Gaps: c.Gaps}, []recovery.Sight(nil)
	for {
		at, more := search.Next(looks)
		if !more {
			break
		}
		was, why := s.then(c.DatabaseID, at)
		if was == nil {
			j.fail(command.ReasonNotRecoverable, "", why)
			return
		}
		seen := recovery.Sight{At: at}
		if rows, there := rowsIn(was.contents, t); there {
			seen.Text = new(strconv.FormatInt(rows, 10))
		} else {
			seen.Missing = fmt.Sprintf("relation %q does not exist", t)
		}
		seen.Holds = until.Holds(seen.Text)
		looks = append(looks, seen)
	}
	j.search, _ = c.Question.Seal(op, search.Result(looks)) // the command was checked
}
