package server

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/id"
)

func (s *Server) health(w http.ResponseWriter, r *http.Request) {
	report, err := s.config.Health.Report(r.Context())
	if err != nil {
		s.config.Log.Sugar().Warnw("degraded", "error", err)
	}
	answer(w, http.StatusOK, report)
}

// capabilities answers while PostgreSQL is down too, without what only PostgreSQL knows.
func (s *Server) capabilities(w http.ResponseWriter, r *http.Request) {
	connections, err := s.config.Commands.Connections(r.Context())
	if err != nil {
		s.config.Log.Sugar().Warnw("capabilities without connections", "error", err)
	}
	routes := []string{"GET /healthz"}
	for pattern := range s.protected() {
		routes = append(routes, pattern)
	}
	slices.Sort(routes)
	answer(w, http.StatusOK, protocol.Capabilities{
		Version: s.config.Version, Routes: routes, Commands: protocol.Kinds, Programs: s.config.Programs(),
		Connections: connections,
	})
}

// command carries out a command to its end, even if the client gives up: the outcome is then in the ledger.
func (s *Server) command(w http.ResponseWriter, r *http.Request) {
	var c protocol.Command
	if no := readBody(w, r, &c); no != nil {
		answer(w, http.StatusBadRequest, no)
		return
	}
	describe(r, c)
	result, err := s.config.Commands.Execute(context.WithoutCancel(r.Context()), c)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	answer(w, http.StatusOK, protocol.Reply{Result: result})
}

// readBody refuses a body that is too long, has unknown or duplicate fields, or is more than one value. Its errors repeat
// nothing of the body, which may contain secrets.
func readBody(w http.ResponseWriter, r *http.Request, to any) *protocol.Refusal {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxCommand))
	if err != nil {
		return &protocol.Refusal{Reason: protocol.ReasonInvalid, Message: "the body is too long, or broke off"}
	}
	if err := json.Unmarshal(text, to, json.RejectUnknownMembers(true)); err != nil {
		return &protocol.Refusal{Reason: protocol.ReasonInvalid, Message: "the body is not the JSON of the protocol"}
	}
	return nil
}

func (s *Server) inspectLogin(w http.ResponseWriter, r *http.Request) {
	var q protocol.LoginQuestion
	if no := readBody(w, r, &q); no != nil {
		answer(w, http.StatusBadRequest, no)
		return
	}
	found, err := s.config.Commands.InspectLogin(r.Context(), q)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	answer(w, http.StatusOK, found)
}

func (s *Server) setAccounts(w http.ResponseWriter, r *http.Request) {
	var accounts protocol.Accounts
	if no := readBody(w, r, &accounts); no != nil {
		answer(w, http.StatusBadRequest, no)
		return
	}
	s.noContent(w, r, s.config.Commands.SetAccounts(r.Context(), accounts))
}

func (s *Server) size(w http.ResponseWriter, r *http.Request) {
	db, ok := databaseOf(w, r)
	if !ok {
		return
	}
	bytes, err := s.config.Commands.Size(r.Context(), db)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	answer(w, http.StatusOK, protocol.Size{Bytes: bytes})
}

func (s *Server) room(w http.ResponseWriter, r *http.Request) {
	db, ok := databaseOf(w, r)
	if !ok {
		return
	}
	s.noContent(w, r, s.config.Files.Room(r.Context(), db))
}

func (s *Server) deleteBackup(w http.ResponseWriter, r *http.Request) {
	db, name, ok := backupOf(w, r)
	if !ok {
		return
	}
	s.noContent(w, r, s.config.Files.Delete(r.Context(), db, name))
}

func (s *Server) noContent(w http.ResponseWriter, r *http.Request, err error) {
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// download streams a file with one small buffer, for as long as the client takes chunk after chunk in time. A truncated file
// breaks the connection, so that nobody takes it for complete.
func (s *Server) download(w http.ResponseWriter, r *http.Request) {
	db, name, ok := backupOf(w, r)
	if !ok {
		return
	}
	file, size, err := s.config.Files.Open(r.Context(), db, name)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	defer file.Close()
	w.Header().Set("Content-Type", "application/gzip")
	w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	control := http.NewResponseController(w)
	for sent := int64(0); sent < size; {
		_ = control.SetWriteDeadline(time.Now().Add(chunkTime)) // supported by every connection of ours
		n, err := io.CopyN(w, file, min(downloadChunk, size-sent))
		if sent += n; err != nil {
			panic(http.ErrAbortHandler)
		}
	}
}

func databaseOf(w http.ResponseWriter, r *http.Request) (id.DatabaseID, bool) {
	db, err := id.Parse[id.DatabaseID](r.PathValue("id"))
	if err != nil {
		answer(w, http.StatusBadRequest, protocol.Refusal{Reason: protocol.ReasonInvalid, Message: "the ID is no UUID"})
	}
	return db, err == nil
}

func backupOf(w http.ResponseWriter, r *http.Request) (id.DatabaseID, backup.Filename, bool) {
	db, ok := databaseOf(w, r)
	if !ok {
		return db, "", false
	}
	name, err := backup.ParseFilename(r.PathValue("filename"))
	if err != nil {
		answer(w, http.StatusBadRequest, protocol.Refusal{Reason: protocol.ReasonInvalid, Message: "no name of a backup file"})
	}
	return db, name, err == nil
}
