package s3

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"syscall"

	"github.com/minio/minio-go/v7"
)

// Where implements blob.Store.
func (s *Store) Where() string {
	return fmt.Sprintf("%s in the bucket %s at %s", s.prefix(), s.config.Bucket, s.config.Endpoint)
}

// Explain implements blob.Store.
func (s *Store) Explain(err error) string {
	where := fmt.Sprintf("the bucket %s at %s", s.config.Bucket, s.config.Endpoint)
	if response := answer(err); response.Code != "" || response.StatusCode != 0 {
		return where + ": " + s.refused(response)
	}
	return where + ": " + s.unreachable(err)
}

// refused explains what the store has answered.
func (s *Store) refused(r minio.ErrorResponse) string {
	switch r.Code {
	case minio.NoSuchBucket:
		return "there is no such bucket; make it, or name another one"
	case "InvalidAccessKeyId", "XAdminUserNotFound":
		return fmt.Sprintf("the store does not know the access key %s; check its ID", s.config.AccessKeyID)
	case "SignatureDoesNotMatch":
		return fmt.Sprintf("the secret key in %s is not that of the access key %s", s.config.SecretKeyFile, s.config.AccessKeyID)
	case "RequestTimeTooSkewed":
		return "this machine's clock and the store's are more than a few minutes apart; set the clock"
	case "AuthorizationHeaderMalformed", "IllegalLocationConstraintException", "PermanentRedirect":
		return fmt.Sprintf("the region %s is not the bucket's; the store says: %s", s.config.Region, r.Message)
	case minio.AccessDenied:
		return fmt.Sprintf("the access key %s may not do that; it must read, write, list and delete objects below %q",
			s.config.AccessKeyID, s.prefix())
	case "QuotaExceeded", "XMinioStorageFull", "XAmzStorageFull", "InsufficientStorage":
		return "the store is full"
	case "ObjectLocked":
		return "object lock keeps it; let the bucket's lock be shorter than backups are kept"
	}
	if r.StatusCode == http.StatusForbidden {
		return fmt.Sprintf("the store refuses the access key %s, or what it asks for (%s %s)", s.config.AccessKeyID, r.Code, r.Message)
	}
	return fmt.Sprintf("the store answers %d %s: %s", r.StatusCode, r.Code, r.Message)
}

// unreachable explains why there is no answer.
func (s *Store) unreachable(err error) string {
	var name *net.DNSError
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var host x509.HostnameError
	var timeout net.Error
	switch {
	case errors.As(err, &name):
		return fmt.Sprintf("the name %s cannot be found", name.Name)
	case errors.As(err, &unknown):
		return fmt.Sprintf("its certificate is of an authority that is not trusted; name its CA (now: %s)", orSystem(s.config.CAFile))
	case errors.As(err, &host):
		return "its certificate is for other names: " + host.Error()
	case errors.As(err, &invalid):
		return "its certificate is not valid: " + invalid.Error()
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there"
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded),
		errors.As(err, &timeout) && timeout.Timeout():
		return "it does not answer in time"
	}
	return err.Error()
}

func orSystem(path string) string {
	if path == "" {
		return "those of the system"
	}
	return path
}
