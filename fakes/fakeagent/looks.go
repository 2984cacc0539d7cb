package fakeagent

import (
	"fmt"
	"strings"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/recovery"
)

// lookJob is work in a server beside that is under way or has ended.
type lookJob struct {
	look   command.Look
	rescue command.RescueReport
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
