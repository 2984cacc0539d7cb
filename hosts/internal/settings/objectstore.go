package settings

import (
	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/agent/blob"
	"github.com/pgherd/pgherd/agent/blob/s3"
)

// ObjectStore defines the flags of an object store for backups.
func ObjectStore(cmd *cobra.Command, c *s3.Config) {
	f := cmd.Flags()
	f.StringVar(&c.Endpoint, "s3-endpoint", "", "URL, with https, of an object store that speaks S3, where backups are kept; "+
		"empty: they are kept in a folder of this machine")
	f.StringVar(&c.Bucket, "s3-bucket", "", "bucket in the object store; it must exist")
	f.StringVar(&c.Prefix, "s3-prefix", "",
		"what begins the keys of objects, such as the server's name: no two agents have the same")
	f.StringVar(&c.Region, "s3-region", "us-east-1", "region that requests are signed for")
	f.BoolVar(&c.PathStyle, "s3-path-style", false, "name the bucket in the path of URLs, and not in the host")
	f.StringVar(&c.CAFile, "s3-ca-file", "", "certificates in PEM of the authorities that the object store's is checked by; "+
		"empty: those of the system")
	f.StringVar(&c.AccessKeyID, "s3-access-key-id", "", "ID of the access key")
	f.StringVar(&c.SecretKeyFile, "s3-secret-key-file", "", "file with the secret key; it is read again when it changes")
}

// OpenObjectStore returns the object store that the flags name; nil where they name none. It is not asked yet.
func OpenObjectStore(cmd *cobra.Command, c s3.Config) (blob.Store, error) {
	if c.Endpoint == "" {
		return nil, nil
	}
	if err := Require(cmd, "s3-bucket", "s3-prefix", "s3-access-key-id", "s3-secret-key-file"); err != nil {
		return nil, err
	}
	if c.CAFile != "" {
		if _, err := Authorities("s3-ca-file", c.CAFile); err != nil {
			return nil, err
		}
	}
	return s3.New(c)
}
