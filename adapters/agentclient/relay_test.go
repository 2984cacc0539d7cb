package agentclient_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"strconv"

	"github.com/pgherd/pgherd/agent/protocol"
	coredb "github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// relay is the agent's side of the protocol over any ports.Agent: what it gives to the agent behind it is what came over
// the wire.
func relay(behind ports.Agent) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/commands", func(w http.ResponseWriter, r *http.Request) {
		var c protocol.Command
		if err := json.NewDecoder(r.Body).Decode(&c); err != nil || protocol.Hash(c.Payload) != c.PayloadHash {
			reply(w, nil, &ports.AgentRefusal{Reason: ports.ReasonInvalid})
			return
		}
		result, err := carryOut(r.Context(), behind, c)
		reply(w, protocol.Reply{Result: encoded(result)}, err)
	})
	mux.HandleFunc("POST /v1/logins/inspect", func(w http.ResponseWriter, r *http.Request) {
		var q protocol.LoginQuestion
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			reply(w, nil, &ports.AgentRefusal{Reason: ports.ReasonInvalid})
			return
		}
		condition, err := behind.InspectLogin(r.Context(), id.DatabaseID(q.DatabaseID), q.Username, q.Verifier)
		reply(w, protocol.LoginAnswer{Condition: string(condition)}, err)
	})
	mux.HandleFunc("PUT /v1/accounts", func(w http.ResponseWriter, r *http.Request) {
		var a protocol.Accounts
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&a); err != nil {
			reply(w, nil, &ports.AgentRefusal{Reason: ports.ReasonInvalid})
			return
		}
		var list []ports.DatabaseAccount
		for _, d := range a.Databases {
			list = append(list, ports.DatabaseAccount{DatabaseID: id.DatabaseID(d.DatabaseID), AccountID: id.AccountID(d.AccountID)})
		}
		reply(w, nil, behind.SetAccounts(r.Context(), list))
	})
	mux.HandleFunc("GET /v1/databases/{id}/size", func(w http.ResponseWriter, r *http.Request) {
		n, err := behind.DatabaseSize(r.Context(), databaseOf(r))
		reply(w, protocol.Size{Bytes: n}, err)
	})
	mux.HandleFunc("GET /v1/databases/{id}/backups/room", func(w http.ResponseWriter, r *http.Request) {
		reply(w, nil, behind.RoomForBackup(r.Context(), databaseOf(r)))
	})
	mux.HandleFunc("DELETE /v1/databases/{id}/backups/{filename}", func(w http.ResponseWriter, r *http.Request) {
		reply(w, nil, behind.DeleteBackup(r.Context(), databaseOf(r), r.PathValue("filename")))
	})
	mux.HandleFunc("GET /v1/databases/{id}/backups/{filename}", func(w http.ResponseWriter, r *http.Request) {
		file, err := behind.OpenBackup(r.Context(), databaseOf(r), r.PathValue("filename"))
		if err != nil {
			reply(w, nil, err)
			return
		}
		defer file.Body.Close()
		w.Header().Set("Content-Length", strconv.FormatInt(file.Size, 10))
		_, _ = io.Copy(w, file.Body)
	})
	mux.HandleFunc("GET /v1/capabilities", answer(200, `{"version":"test","routes":[],"commands":[],"connections":83}`))
	mux.HandleFunc("GET /health", answer(200, `{"postgres_connected":true,"pgbouncer_running":true}`))
	return mux
}

func databaseOf(r *http.Request) id.DatabaseID { return id.DatabaseID(r.PathValue("id")) }

func reply(w http.ResponseWriter, body any, err error) {
	var no *ports.AgentRefusal
	switch {
	case errors.As(err, &no):
		w.WriteHeader(http.StatusConflict)
		refusal := protocol.Refusal{Reason: string(no.Reason), Message: no.Message}
		if g := no.Generations; g != nil {
			refusal.Generations = &protocol.Generations{Applied: g.Applied, Admitted: g.Admitted, Credential: g.Credential}
		}
		body = refusal
	case err != nil:
		panic(http.ErrAbortHandler)
	case body == nil:
		w.WriteHeader(http.StatusNoContent)
		return
	}
	_, _ = w.Write(encoded(body))
}

func encoded(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

func carryOut(ctx context.Context, behind ports.Agent, c protocol.Command) (any, error) {
	fence := ports.Fence{OperationID: id.OperationID(c.OperationID), Epoch: c.Epoch}
	switch c.Kind {
	case protocol.EnsureDatabase:
		return nil, behind.EnsureDatabase(ctx, fence, specOf(decoded[protocol.DatabasePayload](c), c.Secrets))
	case protocol.SetAccess:
		p := decoded[protocol.AccessPayload](c)
		return nil, behind.SetAccess(ctx, fence, ports.AccessSpec{
			DatabaseID: id.DatabaseID(p.DatabaseID), Generation: c.Generation, Open: p.Open, Disconnect: p.Disconnect,
		})
	case protocol.SetAllowlist:
		p := decoded[protocol.AllowlistPayload](c)
		spec := ports.AllowlistSpec{DatabaseID: id.DatabaseID(p.DatabaseID), Generation: c.Generation}
		for _, n := range p.Networks {
			spec.Networks = append(spec.Networks, netip.MustParsePrefix(n))
		}
		return nil, behind.SetAllowlist(ctx, spec)
	case protocol.EnsureLogin:
		return ensureLogin(ctx, behind, fence, c)
	case protocol.RunBackup:
		p := decoded[protocol.BackupPayload](c)
		r, err := behind.Backup(ctx, fence, ports.BackupSpec{
			DatabaseID: id.DatabaseID(p.DatabaseID), Filename: p.Filename, Verify: p.Verify,
		})
		return protocol.BackupReport{
			State: string(r.State), Stage: r.Stage, Progress: r.Progress, Reason: string(r.Reason), Message: r.Message,
			SizeBytes: r.SizeBytes, ChecksumSHA256: r.ChecksumSHA256, VerifiedAt: r.VerifiedAt, RoleManifest: r.RoleManifest,
		}, err
	case protocol.CloseOperation:
		return nil, behind.Close(ctx, fence)
	}
	return nil, &ports.AgentRefusal{Reason: ports.ReasonNoRoute}
}

func specOf(p protocol.DatabasePayload, passwords map[string]string) ports.DatabaseSpec {
	spec := ports.DatabaseSpec{
		ID: id.DatabaseID(p.DatabaseID), Name: p.Name, RoleModel: coredb.RoleModel(p.RoleModel), ConnectionCap: p.ConnectionCap,
	}
	for _, l := range p.Logins {
		spec.Logins = append(spec.Logins, ports.LoginSpec{
			Login: coredb.Login(l.Login), Username: l.Username, Verifier: l.Verifier, Password: passwords[l.Username],
		})
	}
	return spec
}

func decoded[T any](c protocol.Command) (v T) {
	if err := json.Unmarshal(c.Payload, &v); err != nil {
		panic(err)
	}
	return v
}
