// Command objectstore is the object store of the tests: versitygw over a folder, as its own program runs it, but without its other
// back ends, which take long to compile.
package main

import (
	"context"
	"flag"
	"log"
	"os"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

func main() {
	listen := flag.String("listen", "", "address to listen on")
	cert := flag.String("cert", "", "its certificate, in PEM")
	key := flag.String("key", "", "the certificate's key, in PEM")
	buckets := flag.String("buckets", "", "folder of buckets, in which an object is a file")
	attributes := flag.String("attributes", "", "folder of what else is known of objects")
	flag.Parse()
	about, err := meta.NewSideCar(*attributes)
	if err != nil {
		log.Fatal(err)
	}
	folder, err := posix.New(*buckets, about, posix.PosixOpts{SideCarDir: *attributes, Concurrency: 5000})
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(embedgw.RunVersityGW(context.Background(), folder, &embedgw.Config{
		RootUserAccess: os.Getenv("ROOT_ACCESS_KEY"), RootUserSecret: os.Getenv("ROOT_SECRET_KEY"), Region: "us-east-1",
		Ports: []string{*listen}, CertFile: *cert, KeyFile: *key, HealthPath: "/health", Quiet: true, KeepAlive: true,
		MaxConnections: 10000, MaxRequests: 1000, MultipartMaxParts: 10000,
	}))
}
