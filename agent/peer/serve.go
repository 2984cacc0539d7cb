package peer

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/pgherd/pgherd/agent/server"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

// Routes are those that peers may use, each with the token of its operation.
func (a *Admissions) Routes() []server.Guest {
	return []server.Guest{
		{Pattern: reachRoute, Enter: a.entering(reached)},
		{Pattern: passingRoute, Enter: a.entering(a.passing)},
		{Pattern: backupRoute, Enter: a.entering(a.backup)},
		{Pattern: changesRoute, Enter: a.entering(a.changes)},
	}
}

// visit is a request of a peer that was admitted.
type visit struct {
	*admission
	op id.OperationID
}

type visited = func(ctx context.Context, v visit, w http.ResponseWriter, r *http.Request) error

// entering lets those in whom an admission is for, and ends what they do with it.
func (a *Admissions) entering(do visited) func(r *http.Request, token string) (server.Handle, error) {
	return func(r *http.Request, token string) (server.Handle, error) {
		op := id.OperationID(r.PathValue("operation"))
		found, err := a.admits(op, token)
		if found == nil || err != nil {
			return nil, err
		}
		return func(w http.ResponseWriter, r *http.Request) error {
			leave, err := a.enter(found)
			if err != nil {
				return err
			}
			defer leave()
			ctx, cancel := context.WithCancel(r.Context())
			defer cancel()
			control := http.NewResponseController(w)
			defer context.AfterFunc(found.ended, func() {
				cancel()
				_ = control.SetWriteDeadline(time.Now()) // who is slow is not waited for
			})()
			return do(ctx, visit{found, op}, w, r)
		}, nil
	}
}

// reached says nothing but that who asks was admitted.
func reached(_ context.Context, _ visit, w http.ResponseWriter, _ *http.Request) error {
	w.WriteHeader(http.StatusOK)
	return nil
}

// backup sends a blob of one of the database's backups as it lies, which is sealed.
func (a *Admissions) backup(ctx context.Context, v visit, w http.ResponseWriter, r *http.Request) error {
	blob, size, err := a.files.OpenBlob(ctx, v.db, r.PathValue("blob"))
	if err != nil {
		return err
	}
	return send(ctx, w, r, blob, size)
}

// send sends what follows on the bytes that the peer has already, and closes the file. The size may be server.Growing.
func send(ctx context.Context, w http.ResponseWriter, r *http.Request, file io.ReadCloser, size int64) error {
	defer file.Close()
	var from int64
	if text := r.URL.Query().Get(fromKey); text != "" {
		var err error
		if from, err = strconv.ParseInt(text, 10, 64); err != nil || from < 0 || size != server.Growing && from > size {
			return command.Refuse(command.ReasonInvalid, "from is beyond the file")
		}
	}
	reader := within{ctx, file}
	if _, err := io.CopyN(io.Discard, reader, from); err != nil { // what is sealed is opened from its beginning
		return errors.Join(err, ctx.Err())
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	if size != server.Growing {
		size -= from
	}
	server.Stream(w, reader, size)
	return nil
}

// within is a reader that fails once ctx is over.
type within struct {
	ctx context.Context
	io.Reader
}

func (r within) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}
