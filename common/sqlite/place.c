/* Where a database may lie. Called by common/log/local/file.c and worker/start.c. */
#include "common/sqlite/place.h"

#include "common/base/check.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

static const struct {
    uint64_t magic;
    const char *name;
} remote_systems[] = {
    {0x6969, "nfs"},      {0x517b, "smb"},        {0xff534d42, "cifs"},   {0xfe534d42, "smb2"},
    {0x5346414f, "afs"},  {0x6b414653, "afs"},    {0x73757245, "coda"},   {0x01021997, "9p"},
    {0x00c36400, "ceph"}, {0x47504653, "gpfs"},   {0x0bd00bd0, "lustre"}, {0x7461636f, "ocfs2"},
    {0x01161970, "gfs2"}, {0x19830326, "beegfs"}, {0x013111a8, "ibrix"},  {0xaad7aaea, "panfs"},
};

#define FUSE_MAGIC 0x65735546

bool file_system_is_remote(uint64_t magic, const char *mount_type)
{
    for (size_t i = 0; i < COUNT_OF(remote_systems); i++) {
        if (remote_systems[i].magic == magic) {
            return true;
        }
    }
    /* Behind FUSE is anything: only what is known to be of this host is let through. */
    return magic == FUSE_MAGIC && strcmp(mount_type, "fuseblk") != 0 &&
           strcmp(mount_type, "fuse.fuse-overlayfs") != 0;
}

/* The type of the mount with that device, as /proc/self/mountinfo names it; "" if it is not found.
 */
static void mount_type_of(dev_t device, char *ret_type, size_t size)
{
    char line[4096];
    char wanted[32];
    FILE *file = fopen("/proc/self/mountinfo", "re");
    ret_type[0] = '\0';
    if (file == NULL) {
        return;
    }
    snprintf(wanted, sizeof(wanted), " %u:%u ", major(device), minor(device));
    while (fgets(line, sizeof(line), file) != NULL) {
        char *type = strstr(line, wanted) != NULL ? strstr(line, " - ") : NULL;
        if (type != NULL) {
            type += 3;
            type[strcspn(type, " \n")] = '\0';
            snprintf(ret_type, size, "%s", type);
            break;
        }
    }
    fclose(file);
}

bool place_is_remote(const char *folder, struct place_type *ret_type)
{
    struct stat st;
    struct statfs fs;
    char type[64] = "";
    if (stat(folder, &st) != 0 || statfs(folder, &fs) != 0) {
        return false; /* whoever opens it says why it cannot be */
    }
    const uint64_t magic = (uint32_t)fs.f_type;
    if (magic == FUSE_MAGIC) {
        mount_type_of(st.st_dev, type, sizeof(type));
    }
    snprintf(ret_type->s, sizeof(ret_type->s), "%08x%s%s", (unsigned)magic,
             type[0] != '\0' ? " " : "", type);
    return file_system_is_remote(magic, type);
}
