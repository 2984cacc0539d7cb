package agentclient_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"

	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// relay is the agent's side of the protocol over any ports.Agent: what it gives to the agent behind it is what came over
// the wire.
func relay(behind ports.Agent) http.Handler {
	mux, commands := http.NewServeMux(), newDecoders()
	mux.HandleFunc("POST /v1/commands", func(w http.ResponseWriter, r *http.Request) {
		var e protocol.Command
		if err := json.NewDecoder(r.Body).Decode(&e); err != nil || protocol.Hash(e.Payload) != e.PayloadHash {
			reply(w, nil, command.Refuse(command.ReasonInvalid, "no command"))
			return
		}
		decode, known := commands.by[[2]string{string(e.Kind), e.Step}]
		if !known {
			reply(w, nil, command.Refuse(command.ReasonInvalid, "%s is not known", e.Kind))
			return
		}
		c := decode(e)
		said, is := command.About{Kind: e.Kind, Step: e.Step, Resource: e.Resource, Generation: e.Generation}, c.About()
		is.Step = command.Step(c)
		if said != is {
			reply(w, nil, command.Refuse(command.ReasonInvalid, "%s is not what its payload says", e.Kind))
			return
		}
		result, err := behind.Do(r.Context(), ports.Fence{OperationID: id.OperationID(e.OperationID), Epoch: e.Epoch}, c)
		reply(w, protocol.Reply{Result: result}, err)
	})
	answering[command.DatabaseSize](mux, behind)
	answering[command.Settings](mux, behind)
	answering[command.StorageUse](mux, behind)
	answering[command.AskApplied](mux, behind)
	answering[command.AskInventory](mux, behind)
	answering[command.AskStrays](mux, behind)
	answering[command.AskFiles](mux, behind)
	answering[command.AskRights](mux, behind)
	answering[command.InspectLogin](mux, behind)
	answering[command.ReadOutcome](mux, behind)
	answering[command.SetAccounts](mux, behind)
	answering[command.RoomForBackup](mux, behind)
	answering[command.DeleteBackup](mux, behind)
	answering[command.Extensions](mux, behind)
	answering[command.OpenUpload](mux, behind)
	answering[command.AskUpload](mux, behind)
	answering[command.DropUpload](mux, behind)
	route(mux, func(w http.ResponseWriter, r *http.Request, q command.Chunk) {
		answer, err := ports.Send(r.Context(), behind, q, r.ContentLength, r.Body)
		reply(w, answer, err)
	})
	answering[command.AskCapabilities](mux, behind)
	opening[command.OpenBackup](mux, behind)
	opening[command.OpenRest](mux, behind)
	opening[command.OpenManifest](mux, behind)
	return mux
}

func opening[Q command.Question](mux *http.ServeMux, behind ports.Agent) {
	route(mux, func(w http.ResponseWriter, r *http.Request, q Q) {
		file, err := behind.Open(r.Context(), q)
		if err != nil {
			reply(w, nil, err)
			return
		}
		defer file.Body.Close()
		w.Header().Set("Content-Length", strconv.FormatInt(file.Size, 10))
		_, _ = io.Copy(w, file.Body)
	})
}

func route[Q command.Question](mux *http.ServeMux, handle func(http.ResponseWriter, *http.Request, Q)) {
	var zero Q
	mux.HandleFunc(zero.Route().Pattern(), func(w http.ResponseWriter, r *http.Request) {
		var q Q
		if protocol.HasBody(q) {
			if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&q); err != nil {
				reply(w, nil, command.Refuse(command.ReasonInvalid, "no question"))
				return
			}
		}
		protocol.ReadPath(&q, r.PathValue)
		handle(w, r, q)
	})
}

func answering[Q command.Question](mux *http.ServeMux, behind ports.Agent) {
	route(mux, func(w http.ResponseWriter, r *http.Request, q Q) {
		answer, err := behind.Ask(r.Context(), q)
		if _, none := any(q).(command.Asking[command.None]); none {
			reply(w, nil, err)
			return
		}
		reply(w, answer, err)
	})
}

func reply(w http.ResponseWriter, body any, err error) {
	var no *command.Refusal
	switch {
	case errors.As(err, &no):
		w.WriteHeader(http.StatusConflict)
		body = no
	case err != nil:
		panic(http.ErrAbortHandler)
	case body == nil:
		w.WriteHeader(http.StatusNoContent)
		return
	}
	text, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	_, _ = w.Write(text)
}

// decoders read the commands by kind and step.
type decoders struct {
	by map[[2]string]func(protocol.Command) command.Command
}

func newDecoders() *decoders {
	d := &decoders{by: map[[2]string]func(protocol.Command) command.Command{}}
	decoding[command.EnsureDatabase](d)
	decoding[command.SetAccess](d)
	decoding[command.SetAllowlist](d)
	decoding[command.Configure](d)
	decoding[command.PrepareRole](d)
	decoding[command.EnsureOverlay](d)
	decoding[command.AdmitRole](d)
	decoding[command.ChangeLogin](d)
	decoding[command.RemoveRole](d)
	decoding[command.Backup](d)
	decoding[command.ChangeExtension](d)
	decoding[command.QualifyExtension](d)
	decoding[command.Load](d)
	decoding[command.Switch](d)
	decoding[command.Discard](d)
	decoding[command.Isolate](d)
	decoding[command.Rejoin](d)
	decoding[command.Purge](d)
	decoding[command.Close](d)
	return d
}

func decoding[C command.Command](d *decoders) {
	var zero C
	for _, step := range command.Steps(zero) {
		d.by[[2]string{string(zero.About().Kind), step}] = func(e protocol.Command) command.Command { return decoded[C](e) }
	}
}

func decoded[C command.Command](e protocol.Command) (c C) {
	if err := json.Unmarshal(e.Payload, &c); err != nil {
		panic(err)
	}
	command.Receive(&c, command.Envelope{
		OperationID: id.OperationID(e.OperationID), Generation: e.Generation, Secrets: e.Secrets,
	})
	return c
}
