/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* vcio.c: makes /dev/vcio, which Debian's kernel does not have: a module that hands buffers of the
 * property interface to the mailbox of a Raspberry Pi's firmware, as raspberrypi/linux
 * drivers/char/broadcom/vcio.c does. */
#include <linux/ioctl.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/of.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <soc/bcm2835/raspberrypi-firmware.h>

#define PROPERTY _IOWR(100, 0, char *)

/* Size, code and end, which rpi_firmware_property_list() adds itself, and one tag. */
enum { FRAME_BYTES = 12, SMALLEST = 24, LARGEST = 4096 };

static struct rpi_firmware *firmware;

static long property(struct file *file, unsigned int request, unsigned long argument)
{
	void __user *user = (void __user *)argument;
	u32 size, *words;
	long r;

	(void)file;
	if (request != PROPERTY) {
		return -ENOTTY;
	}
	if (copy_from_user(&size, user, sizeof(size))) {
		return -EFAULT;
	}
	if (size < SMALLEST || size > LARGEST || size % sizeof(u32) != 0) {
		return -EINVAL;
	}
	words = memdup_user(user, size);
	if (IS_ERR(words)) {
		return PTR_ERR(words);
	}
	r = rpi_firmware_property_list(firmware, words + 2, size - FRAME_BYTES);
	words[1] = RPI_FIRMWARE_STATUS_SUCCESS;
	if (r == 0 && copy_to_user(user, words, size)) {
		r = -EFAULT;
	}
	kfree(words);
	return r;
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = property,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "vcio",
	.fops = &operations,
	.mode = 0660,
};

static int __init vcio_init(void)
{
	struct device_node *node =
		of_find_compatible_node(NULL, NULL, "raspberrypi,bcm2835-firmware");

	firmware = node ? rpi_firmware_get(node) : NULL;
	of_node_put(node);
	return firmware ? misc_register(&device) : -ENODEV;
}

static void __exit vcio_exit(void)
{
	misc_deregister(&device);
	rpi_firmware_put(firmware);
}

module_init(vcio_init);
module_exit(vcio_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("/dev/vcio for tests of edgeprofd");
