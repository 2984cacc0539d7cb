package httpapi

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"github.com/go-json-experiment/json"

	"github.com/pgherd/pgherd/adapters/httpapi/serve"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/certificate"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/certificates"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/ports"
)

func viewCertificateKey(k certificate.Key) wire.CertificateKey {
	return wire.CertificateKey{
		KeyID: k.ID, Algorithm: "Ed25519", PublicKey: k.PublicKey, PEM: k.PEM(), CreatedAt: instant(k.CreatedAt),
		RetiredAt: instantOrNull(k.RetiredAt),
	}
}

type certificateRoutes struct{ use *certificates.Certificates }

func (c certificateRoutes) routes() []serve.Route {
	return []serve.Route{
		{
			Name: "getBackupCertificate", Summary: "Get the signed proof that a backup was restored and found equal",
			Method: http.MethodGet, Path: databasesPath + "/{id}/backups/{filename}/certificate", Class: ratelimit.Read,
			Target: Database, Action: account.See, Work: c.issue(),
			Refusals: []fault.Code{
				fault.BackupNotFound, fault.BackupNotVerified, fault.BackupConflict, fault.FeatureNotAvailable, fault.AgentError,
				fault.BackupStorageUnavailable, fault.AgentRouteUnavailable, fault.ServerBusy,
			},
		},
		{
			Name: "listCertificateKeys", Summary: "List every key that ever signed certificates, newest first; needs no API key",
			Method: http.MethodGet, Path: keyed + "/certificate-keys", Class: ratelimit.Publish, Key: serve.Public,
			Work: serve.Paged(serve.WholeList, callerOf, c.keys, viewCertificateKey),
		},
	}
}

func (c certificateRoutes) keys(
	ctx context.Context, _ access.Caller, p ports.Page,
) ([]certificate.Key, *ports.Position, error) {
	return c.use.Keys(ctx, p)
}

// issue sends the certificate as a stream, so that its turn, and with it the memory that certificates take, is given back when it
// was sent: a client may be slow.
func (c certificateRoutes) issue() serve.Work {
	return serve.Work{
		Answers: []serve.Documented{{Status: http.StatusOK, Body: wire.Certificate{}}},
		Handle: serve.WhileClientStays(func(r *serve.Request) (certificates.Issued, error) {
			return c.use.Issue(r.Context(), databaseOf(r), filenameOf(r))
		}, viewCertificate),
	}
}

func viewCertificate(made certificates.Issued) (serve.Answer, error) {
	text, err := json.Marshal(wire.Certificate{KeyID: made.KeyID, Document: made.Document, Signature: made.Signature})
	if err != nil {
		made.Done()
		return serve.Answer{}, err
	}
	return serve.Answer{Status: http.StatusOK, Download: &serve.Download{
		ContentType: "application/json", Size: int64(len(text)), Content: held{bytes.NewReader(text), made.Done},
	}}, nil
}

// held is a text whose end gives something back.
type held struct {
	io.Reader
	done func()
}

// Close implements io.Closer.
func (h held) Close() error {
	h.done()
	return nil
}
