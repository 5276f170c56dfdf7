package blob

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strconv"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// objects is a bucket that speaks S3.
type objects struct {
	client    minio.Core
	transport *http.Transport
	bucket    string
}

// objectsURL holds the parts of a bucket's URL.
type objectsURL struct {
	bucket, region string
	endpoint       *url.URL // nil: AWS's own
	pathStyle      bool
}

// parseObjects reads s3://bucket?region=…&endpoint=…&use_path_style=true. No error
// quotes it.
func parseObjects(u *url.URL) (objectsURL, error) {
	o := objectsURL{bucket: u.Host}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil || u.Path != "" {
		return o, errors.New("is not s3://bucket?region=…&endpoint=…&use_path_style=true")
	}
	for key, values := range query {
		value := values[0]
		switch key {
		case "region":
			o.region = value
		case "endpoint":
			o.endpoint, err = parseEndpoint(value)
		case "use_path_style":
			if o.pathStyle, err = strconv.ParseBool(value); err != nil {
				err = errors.New("says neither use_path_style=true nor false")
			}
		default:
			err = errors.New("says more than region, endpoint and use_path_style")
		}
		if err != nil {
			return o, err
		}
	}
	return o, nil
}

func parseEndpoint(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil ||
		u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("has an endpoint that is not http(s)://host or http(s)://host:port")
	}
	return u, nil
}

// openObjects takes the settings that the URL leaves open from the environment, as AWS's
// own programs do. It takes the credentials from there, too: keys, a profile of ~/.aws,
// or the role of the machine, container or pod.
func openObjects(u *url.URL) (*objects, error) {
	o, err := parseObjects(u)
	if err != nil {
		return nil, err
	}
	if named := cmp.Or(os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL")); o.endpoint == nil && named != "" {
		if o.endpoint, err = parseEndpoint(named); err != nil {
			return nil, fmt.Errorf("AWS_ENDPOINT_URL: %w", err)
		}
	}
	at, secure, lookup := "s3.amazonaws.com", true, minio.BucketLookupAuto
	if o.endpoint != nil {
		at, secure, lookup = o.endpoint.Host, o.endpoint.Scheme == "https", minio.BucketLookupDNS
	}
	if o.pathStyle {
		lookup = minio.BucketLookupPath
	}
	transport, err := minio.DefaultTransport(secure)
	if err != nil {
		return nil, err
	}
	client, err := minio.New(at, &minio.Options{
		Creds: credentials.NewChainCredentials([]credentials.Provider{
			&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{},
		}),
		Secure:       secure,
		Region:       cmp.Or(o.region, os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION")),
		BucketLookup: lookup,
		Transport:    transport,
		MaxRetries:   3,
	})
	if err != nil {
		return nil, err
	}
	return &objects{minio.Core{Client: client}, transport, o.bucket}, nil
}

// part is how much of a file is in memory, and sent, at a time. S3 takes 10,000 parts.
const part = 8 << 20

func (o *objects) Write(ctx context.Context, key, contentType string, about map[string]string, content io.Reader) error {
	options := minio.PutObjectOptions{
		ContentType: contentType, UserMetadata: make(map[string]string, len(about)),
		// The signature covers the sum, so it need not cover the content: not every
		// server that speaks S3 takes a streamed signature.
		SendContentMd5: true, DisableContentSha256: true,
		PartSize: part, NumThreads: 1, // bounds the content in memory
	}
	for name, value := range about {
		options.UserMetadata[name] = url.PathEscape(value)
	}
	// A file that fits into one part is one request.
	whole := &unbroken{content: content}
	begins, err := io.ReadAll(io.LimitReader(whole, part))
	switch {
	case err != nil:
	case len(begins) < part:
		_, err = o.client.Client.PutObject(ctx, o.bucket, key, bytes.NewReader(begins), int64(len(begins)), options)
	default:
		_, err = o.client.Client.PutObject(ctx, o.bucket, key, io.MultiReader(bytes.NewReader(begins), whole), -1, options)
	}
	return of(key, err)
}

// unbroken never ends with io.ErrUnexpectedEOF itself, which the client would take
// for the end of the file: half of an upload that broke off would be stored.
type unbroken struct{ content io.Reader }

func (u *unbroken) Read(p []byte) (int, error) {
	n, err := u.content.Read(p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("it broke off: %w", err)
	}
	return n, err
}

func (o *objects) Read(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	var options minio.GetObjectOptions
	if length > 0 {
		if err := options.SetRange(offset, offset+length-1); err != nil {
			return nil, err
		}
	}
	content, _, _, err := o.client.GetObject(ctx, o.bucket, key, options)
	switch {
	case err != nil:
		return nil, of(key, err)
	case length == 0:
		return http.NoBody, content.Close()
	}
	return content, nil
}

// of names the file, and tells one that is not there from a bucket that is not.
func of(key string, err error) error {
	switch {
	case err == nil:
		return nil
	case minio.ToErrorResponse(err).Code == minio.NoSuchKey:
		return fmt.Errorf("%s: %w: %w", key, fs.ErrNotExist, err)
	}
	return fmt.Errorf("%s: %w", key, err)
}

func (o *objects) Size(ctx context.Context, key string) (int64, error) {
	info, err := o.client.StatObject(ctx, o.bucket, key, minio.StatObjectOptions{})
	return info.Size, of(key, err)
}

func (o *objects) Each(ctx context.Context, see func(key string) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the listing
	for found := range o.client.Client.ListObjects(ctx, o.bucket, minio.ListObjectsOptions{Recursive: true}) {
		if found.Err != nil {
			return found.Err
		}
		if err := see(found.Key); err != nil {
			return err
		}
	}
	return nil
}

func (o *objects) Delete(ctx context.Context, key string) error {
	err := of(key, o.client.RemoveObject(ctx, o.bucket, key, minio.RemoveObjectOptions{}))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (o *objects) Erase(ctx context.Context, folder string) (files int, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the listing where a deletion failed
	for found := range o.client.Client.ListObjects(ctx, o.bucket, minio.ListObjectsOptions{Prefix: folder + "/", Recursive: true}) {
		if found.Err != nil {
			return files, found.Err
		}
		if err := o.Delete(ctx, found.Key); err != nil {
			return files, err
		}
		files++
	}
	return files, nil
}

func (*objects) Room() (free, total int64, err error) { return 0, 0, nil }

func (o *objects) Reachable(ctx context.Context) error {
	found, err := o.client.BucketExists(ctx, o.bucket)
	if err == nil && !found {
		err = errors.New("the bucket does not exist")
	}
	return err
}

func (o *objects) Close() error {
	o.transport.CloseIdleConnections()
	return nil
}
